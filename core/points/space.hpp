// Points with a metric: exact similarities of pairs of points, and normalized rows for float32 products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/memory.hpp"
#include "base/numbers.hpp"
#include "base/thread_pool.hpp"
#include "simd/dot.hpp"

namespace agglo {

enum class Metric { dot, cosine, sqeuclidean, euclidean };

inline bool is_similarity(Metric metric) { return metric == Metric::dot || metric == Metric::cosine; }

// A view of n rows with d numbers each. The caller owns the data.
// All numbers are finite, and their magnitudes are at most 1e100.
template <class T>
struct Points {
  const T* data;
  std::int64_t n, d;

  const T* row(std::int64_t i) const { return data + i * d; }
};

// A view of n rows with d numbers each, whose number type is known only at run time.
// Only Space reads the numbers. So the searches are not compiled separately for each number type.
struct AnyPoints {
  const std::byte* data;
  NumberType type;
  std::int64_t n, d;

  AnyPoints(const void* numbers, NumberType number_type, std::int64_t n_rows, std::int64_t n_columns)
      : data(static_cast<const std::byte*>(numbers)), type(number_type), n(n_rows), d(n_columns) {}
  template <class T>
  AnyPoints(const Points<T>& points) : AnyPoints(points.data, kNumberType<T>, points.n, points.d) {}

  std::int64_t row_bytes() const { return d * size_of(type); }
  const std::byte* row(std::int64_t i) const { return data + i * row_bytes(); }
};

// Write row i in float64. No number is rounded.
void widen_row(const AnyPoints& points, std::int64_t i, double* out);

// A query: a row that is not one of the points, prepared for comparisons with the points.
struct Query {
  const void* row;
  double factor;  // the normalized row of the query is (row - center) * factor
  double square;  // the squared length of the normalized row
  bool quick;     // whether float32 products of the query are precise and do not overflow
};

// Points, and the similarity of pairs of points. Under every metric, a larger similarity means closer.
//
// The normalized row of x is (x - center) * factor.
// Normalized rows have a length of at most 1. So their float32 products do not overflow and stay precise.
// Under cosine, each point has its own factor. Under the other metrics, all points share one factor.
// Under dot product and cosine, the similarity is the dot product of two normalized rows.
// Under distances, the similarity is minus half the squared distance of two normalized rows.
class Space {
 public:
  Space(const AnyPoints& points, Metric metric, ThreadPool& pool);

  std::int64_t n() const { return points_.n; }
  std::int64_t d() const { return points_.d; }
  Metric metric() const { return metric_; }
  // Return whether products may be computed in float32. This is true for all number types except float64.
  bool has_quick_products() const { return points_.type != NumberType::float64; }
  void prefetch_row(std::int64_t i) const { prefetch(points_.row(i), points_.row_bytes()); }

  // Write the normalized row of point i in float32. Each number is rounded at most three times.
  void normalize(std::int64_t i, float* out) const { shift(points_.row(i), factor(i), out); }
  // Write the normalized row of point i in float64, where rounding errors are negligible.
  void normalize(std::int64_t i, double* out) const { shift(points_.row(i), factor(i), out); }
  // Return the squared length of the normalized row of point i.
  double square(std::int64_t i) const { return squares_[i]; }
  // Return the offset of point i: half the squared length of its normalized row for distances, otherwise 0.
  // The similarity of i and j is the dot product of their normalized rows minus both offsets.
  double offset(std::int64_t i) const { return is_similarity(metric_) ? 0 : squares_[i] / 2; }

  // Return the exact similarity of the points i and j. Searches rank neighbours by this similarity.
  // Similarities are summed in float64. The pairs (i, j) and (j, i) have the same similarity, to the last
  // bit.
  double similarity(std::int64_t i, std::int64_t j) const {
    return similarity(points_.row(i), points_.row(j), factor(i) * factor(j));
  }
  // Return the similarity of the points i and j, computed in float32 if float32 is precise enough.
  // The error is at most d / 4 + 32 times the float32 rounding error of a squared length.
  double quick_similarity(std::int64_t i, std::int64_t j) const {
    return quick_similarity(points_.row(i), points_.row(j), factor(i) * factor(j), quick_);
  }
  // Convert a similarity to the value of the metric, such as a Euclidean distance.
  float value(double similarity) const;

  // The functions below compare a query with a point. The normalized row of a query may be longer than 1.
  Query make_query(const void* row) const;
  void normalize(const Query& query, float* out) const { shift(query.row, query.factor, out); }
  void normalize(const Query& query, double* out) const { shift(query.row, query.factor, out); }
  double similarity(const Query& query, std::int64_t j) const {
    return similarity(query.row, points_.row(j), query.factor * factor(j));
  }
  double quick_similarity(const Query& query, std::int64_t j) const {
    return quick_similarity(query.row, points_.row(j), query.factor * factor(j), query.quick);
  }

 private:
  double similarity(const void* x, const void* y, double scale) const;
  double quick_similarity(const void* x, const void* y, double scale, bool quick) const;
  void shift(const void* x, double factor, float* out) const {
    kernels_.shift_to_float(x, quick_center_.data(), center_.data(), factor, points_.d, out);
  }
  void shift(const void* x, double factor, double* out) const {
    kernels_.shift_to_double(x, center_.data(), factor, points_.d, out);
  }
  // Returns the factor of point i. Under cosine, the factor of a point with only zeros is 0.
  // So all similarities of such a point are 0.
  double factor(std::int64_t i) const { return factors_.empty() ? factor_ : factors_[i]; }

  AnyPoints points_;
  Metric metric_;
  RowKernels kernels_;
  std::vector<double> center_;       // the center; if the points are not float64, it is rounded to float32
  std::vector<float> quick_center_;  // the center in float32
  std::vector<double> squares_, factors_;  // under cosine, `factors_` has one factor per point
  double factor_ = 1;   // under other metrics, the factor of all points (a power of two, to avoid rounding)
  bool quick_ = false;  // whether float32 products of the original points are precise and do not overflow
};

}  // namespace agglo
