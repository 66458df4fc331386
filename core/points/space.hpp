// Points under a metric: exact similarities of pairs, and normalized rows for products in float32.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

enum class Metric { dot, cosine, sqeuclidean, euclidean };

inline bool is_similarity(Metric metric) { return metric == Metric::dot || metric == Metric::cosine; }

// A view of n rows of d finite numbers, none larger than 1e100. The caller owns the data.
template <class T>
struct Points {
  const T* data;
  std::int64_t n, d;

  const T* row(std::int64_t i) const { return data + i * d; }
};

// A row that is not one of the points of a space, prepared for comparisons with them.
template <class T>
struct Query {
  const T* row;
  double factor;  // which its normalized row is multiplied by
  double square;  // squared length of its normalized row
  bool quick;     // whether its products are safe in float32
};

// Points, and the similarity of pairs of them. Larger is closer under every metric.
//
// The normalized row of x is (x - center) * factor. Its length is at most 1, so products in float32 neither
// overflow nor lose more digits than necessary. Under cosine each point has its own factor, otherwise all
// share one. Similarity is the dot product of two normalized rows, or minus half their squared distance.
template <class T>
class Space {
 public:
  Space(const Points<T>& points, Metric metric, ThreadPool& pool);

  std::int64_t n() const { return points_.n; }
  std::int64_t d() const { return points_.d; }
  const Points<T>& points() const { return points_; }
  Metric metric() const { return metric_; }

  // Write the normalized row of point i in float32, where each number is rounded at most three times.
  void normalize(std::int64_t i, float* out) const;
  // Write it in float64, where its rounding errors are negligible.
  void normalize(std::int64_t i, double* out) const;
  // Return the squared length of the normalized row of point i.
  double square(std::int64_t i) const { return squares_[i]; }
  // Return what must be subtracted for point i from the product of two normalized rows to get a similarity.
  double offset(std::int64_t i) const { return is_similarity(metric_) ? 0 : squares_[i] / 2; }

  // Return the exact similarity, by which results are ranked: summed in float64, the same bits for (j, i).
  double similarity(std::int64_t i, std::int64_t j) const;
  // Return the similarity in float32 if possible. It errs by at most d / 4 + 32 roundings of a squared
  // length.
  double quick_similarity(std::int64_t i, std::int64_t j) const;
  // Convert a similarity to the value of the metric.
  float value(double similarity) const;

  // The same for a query, whose normalized row may be longer than 1. It depends on no other query.
  Query<T> make_query(const T* row) const;
  void normalize(const Query<T>& query, float* out) const;
  void normalize(const Query<T>& query, double* out) const;
  double similarity(const Query<T>& query, std::int64_t j) const;
  double quick_similarity(const Query<T>& query, std::int64_t j) const;

 private:
  double similarity(const T* x, const T* y, double scale) const;
  double quick_similarity(const T* x, const T* y, double scale, bool quick) const;
  // All-zero points have no direction: under cosine their factor, and so their similarity to all, is 0.
  double factor(std::int64_t i) const { return metric_ == Metric::cosine ? factors_[i] : factor_; }

  Points<T> points_;
  Metric metric_;
  std::vector<Wide<T>> center_;
  std::vector<double> squares_, factors_;  // factors of cosine
  double factor_ = 1;                      // of the other metrics: a power of two, which rounds nothing
  bool quick_ = false;                     // whether products of the points as given are safe in float32
};

}  // namespace agglo
