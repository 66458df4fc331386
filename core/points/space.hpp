// Points with a metric: exact similarities of pairs, and normalized rows for float32 products.
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

// A view of n rows with d finite numbers each, none larger than 1e100. The caller owns the data.
template <class T>
struct Points {
  const T* data;
  std::int64_t n, d;

  const T* row(std::int64_t i) const { return data + i * d; }
};

// The same view for numbers of any type. Only Space reads the numbers, so the searches are compiled once.
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

// A query: a row that is not one of the points, prepared for comparisons with the points.
struct Query {
  const void* row;
  double factor;  // factor of its normalized row
  double square;  // squared length of its normalized row
  bool quick;     // whether its products are safe in float32
};

// Points, and the similarity of pairs of points. Larger is closer under every metric.
//
// The normalized row of x is (x - center) * factor.
// Normalized rows have a length of at most 1, so float32 products do not overflow and stay precise.
// Under cosine, each point has its own factor. Under the other metrics, all points share one factor.
// The similarity is the dot product of two normalized rows, or minus half their squared distance.
class Space {
 public:
  Space(const AnyPoints& points, Metric metric, ThreadPool& pool);

  std::int64_t n() const { return points_.n; }
  std::int64_t d() const { return points_.d; }
  Metric metric() const { return metric_; }
  // Return whether the number type has float32 products. float64 has not.
  bool has_quick_products() const { return points_.type != NumberType::float64; }
  void prefetch_row(std::int64_t i) const { prefetch(points_.row(i), points_.row_bytes()); }

  // Write the normalized row of point i in float32. Each number is rounded at most three times.
  void normalize(std::int64_t i, float* out) const { shift(points_.row(i), factor(i), out); }
  // Write the normalized row of point i in float64, where rounding errors are negligible.
  void normalize(std::int64_t i, double* out) const { shift(points_.row(i), factor(i), out); }
  // Return the squared length of the normalized row of point i.
  double square(std::int64_t i) const { return squares_[i]; }
  // Return the offset of point i. The similarity of i and j is the product of their rows minus both offsets.
  double offset(std::int64_t i) const { return is_similarity(metric_) ? 0 : squares_[i] / 2; }

  // Return the exact similarity, which ranks the results.
  // Similarities are summed in float64, and (j, i) gives the same bits.
  double similarity(std::int64_t i, std::int64_t j) const {
    return similarity(points_.row(i), points_.row(j), factor(i) * factor(j));
  }
  // Return the similarity, computed in float32 if possible.
  // The error is at most d / 4 + 32 roundings of a squared length.
  double quick_similarity(std::int64_t i, std::int64_t j) const {
    return quick_similarity(points_.row(i), points_.row(j), factor(i) * factor(j), quick_);
  }
  // Convert a similarity to the value of the metric.
  float value(double similarity) const;

  // The same functions for a query, whose normalized row may be longer than 1.
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
  // All-zero points have no direction. Under cosine, their factor is 0, and so are all their similarities.
  double factor(std::int64_t i) const { return factors_.empty() ? factor_ : factors_[i]; }

  AnyPoints points_;
  Metric metric_;
  RowKernels kernels_;
  std::vector<double> center_;             // rounded to float32 unless the points are float64
  std::vector<float> quick_center_;        // the same center in float32
  std::vector<double> squares_, factors_;  // one factor per point under cosine
  double factor_ = 1;   // the factor of other metrics: a power of two, which causes no rounding
  bool quick_ = false;  // whether products of the original points are safe in float32
};

}  // namespace agglo
