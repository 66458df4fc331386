// Points under a metric: how close two of them are, exactly, and how they look in float32.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

enum class Metric { dot, cosine, sqeuclidean, euclidean };

inline bool similarity(Metric metric) { return metric == Metric::dot || metric == Metric::cosine; }

// Points that somebody else owns: n rows of d finite numbers, none larger than 1e100.
template <class T>
struct Points {
  const T* data;
  std::int64_t n, d;

  const T* row(std::int64_t i) const { return data + i * d; }
};

// A point that is none of a space's own, as the space sees it.
template <class T>
struct Guest {
  const T* row;
  double factor;
  double square;  // squared length of its image
  bool quick;     // whether its products are safe in float32
};

// Closeness is one number for all metrics, the larger the closer: the dot product, or minus half the squared
// distance, of the points' images. The image of x is (x - center) * factor, at most of length 1: so its
// float32 products neither overflow nor are larger than they need be. Under cosine every point has a factor
// of its own.
template <class T>
class Space {
 public:
  Space(const Points<T>& points, Metric metric, ThreadPool& pool);

  std::int64_t n() const { return points_.n; }
  std::int64_t d() const { return points_.d; }
  const Points<T>& points() const { return points_; }
  Metric metric() const { return metric_; }

  // The image of point i in float32, each number rounded at most three times.
  void image(std::int64_t i, float* out) const;
  // The same in float64, where its roundings do not count.
  void image(std::int64_t i, double* out) const;
  // Its squared length.
  double square(std::int64_t i) const { return squares_[i]; }
  // What closeness takes from the product of the images of two points, for each of them.
  double offset(std::int64_t i) const { return similarity(metric_) ? 0 : squares_[i] / 2; }

  // Closeness as it counts: summed in float64, the same bits for (j, i).
  double closeness(std::int64_t i, std::int64_t j) const;
  // In float32 if that is possible, with no more than d / 4 + 32 roundings of a square of a length.
  double quick_closeness(std::int64_t i, std::int64_t j) const;
  // The metric's own value of a closeness.
  float value(double closeness) const;

  // The same for a guest, whose image may be longer than 1: what it is like is up to it and the space alone.
  Guest<T> guest(const T* row) const;
  void image(const Guest<T>& guest, float* out) const;
  void image(const Guest<T>& guest, double* out) const;
  double closeness(const Guest<T>& guest, std::int64_t j) const;
  double quick_closeness(const Guest<T>& guest, std::int64_t j) const;

 private:
  // Of all-zero points under cosine there is no direction; their similarity to all is zero.
  double factor(std::int64_t i) const { return metric_ == Metric::cosine ? factors_[i] : factor_; }

  Points<T> points_;
  Metric metric_;
  std::vector<Wide<T>> center_;
  std::vector<double> squares_, factors_;  // the factors of cosine
  double factor_ = 1;                      // of the other metrics, a power of two, which rounds nothing
  bool quick_ = false;                     // whether products of the points as given are safe in float32
};

}  // namespace agglo
