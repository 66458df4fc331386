// Points with a metric: exact similarities of pairs, and normalized rows for float32 products.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers.hpp"
#include "base/thread_pool.hpp"

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

// A query: a row that is not one of the points, prepared for comparisons with the points.
template <class T>
struct Query {
  const T* row;
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
template <class T>
class Space {
 public:
  Space(const Points<T>& points, Metric metric, ThreadPool& pool);

  std::int64_t n() const { return points_.n; }
  std::int64_t d() const { return points_.d; }
  const Points<T>& points() const { return points_; }
  Metric metric() const { return metric_; }

  // Write the normalized row of point i in float32. Each number is rounded at most three times.
  void normalize(std::int64_t i, float* out) const;
  // Write the normalized row of point i in float64, where rounding errors are negligible.
  void normalize(std::int64_t i, double* out) const;
  // Return the squared length of the normalized row of point i.
  double square(std::int64_t i) const { return squares_[i]; }
  // Return the offset of point i. The similarity of i and j is the product of their rows minus both offsets.
  double offset(std::int64_t i) const { return is_similarity(metric_) ? 0 : squares_[i] / 2; }

  // Return the exact similarity, which ranks the results.
  // Similarities are summed in float64, and (j, i) gives the same bits.
  double similarity(std::int64_t i, std::int64_t j) const;
  // Return the similarity, computed in float32 if possible.
  // The error is at most d / 4 + 32 roundings of a squared length.
  double quick_similarity(std::int64_t i, std::int64_t j) const;
  // Convert a similarity to the value of the metric.
  float value(double similarity) const;

  // The same functions for a query, whose normalized row may be longer than 1.
  Query<T> make_query(const T* row) const;
  void normalize(const Query<T>& query, float* out) const;
  void normalize(const Query<T>& query, double* out) const;
  double similarity(const Query<T>& query, std::int64_t j) const;
  double quick_similarity(const Query<T>& query, std::int64_t j) const;

 private:
  double similarity(const T* x, const T* y, double scale) const;
  double quick_similarity(const T* x, const T* y, double scale, bool quick) const;
  // All-zero points have no direction. Under cosine, their factor is 0, and so are all their similarities.
  double factor(std::int64_t i) const { return metric_ == Metric::cosine ? factors_[i] : factor_; }

  Points<T> points_;
  Metric metric_;
  std::vector<Wide<T>> center_;
  std::vector<double> squares_, factors_;  // one factor per point under cosine
  double factor_ = 1;   // the factor of other metrics: a power of two, which causes no rounding
  bool quick_ = false;  // whether products of the original points are safe in float32
};

}  // namespace agglo
