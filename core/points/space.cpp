#include "points/space.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "simd/dot.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows = 256;     // rows per chunk of parallel work
constexpr std::int64_t kSample = 1024;  // size of the sample whose mean is the center
// Points with lengths in this range can be multiplied in float32 without normalization, at the same accuracy.
constexpr double kMinQuickLength = 1e-3, kMaxQuickLength = 1e18;

}  // namespace

template <class T>
Space<T>::Space(const Points<T>& points, Metric metric, ThreadPool& pool) : points_(points), metric_(metric) {
  const std::int64_t n = points.n, d = points.d;
  std::vector<double> mean(d, 0.0);
  if (!is_similarity(metric)) {
    const std::int64_t sample = std::min(n, kSample);
    for (std::int64_t s = 0; s < sample; ++s) {
      const T* x = points.row(s * n / sample);
      for (std::int64_t j = 0; j < d; ++j) mean[j] += static_cast<double>(x[j]) / static_cast<double>(sample);
    }
  }
  center_.assign(mean.begin(), mean.end());

  squares_.resize(n);
  pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    std::vector<double> shifted(d);
    for (std::int64_t i = first; i < last; ++i) {
      normalize(i, shifted.data());
      squares_[i] = dot(shifted.data(), shifted.data(), d);
    }
  });
  const double largest = *std::max_element(squares_.begin(), squares_.end());
  double smallest = largest;
  for (const double square : squares_)
    if (square > 0) smallest = std::min(smallest, square);
  const double length = std::sqrt(metric == Metric::cosine ? smallest : largest);
  quick_ =
      !std::is_same_v<T, double> && length > kMinQuickLength && largest < kMaxQuickLength * kMaxQuickLength;

  if (metric == Metric::cosine) {
    factors_.resize(n);
    for (std::int64_t i = 0; i < n; ++i) {
      factors_[i] = squares_[i] > 0 ? 1 / std::sqrt(squares_[i]) : 0;
      squares_[i] = squares_[i] > 0 ? 1 : 0;
    }
  } else if (largest > 0) {
    factor_ = std::min(unit_scale(largest), kMaxScale);
    for (double& square : squares_) square *= factor_ * factor_;
  }
}

template <class T>
void Space<T>::normalize(std::int64_t i, float* out) const {
  shift_and_scale(points_.row(i), center_.data(), factor(i), points_.d, out);
}

template <class T>
void Space<T>::normalize(std::int64_t i, double* out) const {
  const T* x = points_.row(i);
  const double scale = factors_.empty() ? factor_ : factors_[i];
  for (std::int64_t j = 0; j < points_.d; ++j) out[j] = (static_cast<double>(x[j]) - center_[j]) * scale;
}

template <class T>
double Space<T>::similarity(const T* x, const T* y, double scale) const {
  if (is_similarity(metric_)) return dot(x, y, points_.d) * scale;
  return squared_distance(x, y, points_.d) * scale / -2;
}

template <class T>
double Space<T>::quick_similarity(const T* x, const T* y, double scale, bool quick) const {
  if constexpr (!std::is_same_v<T, double>) {
    if (quick && is_similarity(metric_)) return quick_dot(x, y, points_.d) * scale;
    if (quick) return quick_squared_distance(x, y, points_.d) * scale / -2;
  }
  return similarity(x, y, scale);
}

template <class T>
double Space<T>::similarity(std::int64_t i, std::int64_t j) const {
  return similarity(points_.row(i), points_.row(j), factor(i) * factor(j));
}

template <class T>
double Space<T>::quick_similarity(std::int64_t i, std::int64_t j) const {
  return quick_similarity(points_.row(i), points_.row(j), factor(i) * factor(j), quick_);
}

template <class T>
double Space<T>::similarity(const Query<T>& query, std::int64_t j) const {
  return similarity(query.row, points_.row(j), query.factor * factor(j));
}

template <class T>
double Space<T>::quick_similarity(const Query<T>& query, std::int64_t j) const {
  return quick_similarity(query.row, points_.row(j), query.factor * factor(j), query.quick);
}

template <class T>
float Space<T>::value(double similarity) const {
  switch (metric_) {
    case Metric::cosine:
      return static_cast<float>(std::clamp(similarity, -1.0, 1.0));
    case Metric::dot:
      return static_cast<float>(similarity / (factor_ * factor_));
    case Metric::sqeuclidean:
      return static_cast<float>(-2 * similarity / (factor_ * factor_));
    default:
      return static_cast<float>(std::sqrt(-2 * similarity) / factor_);
  }
}

template <class T>
Query<T> Space<T>::make_query(const T* row) const {
  const std::int64_t d = points_.d;
  std::vector<double> shifted(d);
  for (std::int64_t j = 0; j < d; ++j) shifted[j] = static_cast<double>(row[j]) - center_[j];
  const double square = dot(shifted.data(), shifted.data(), d);
  const bool quick =
      quick_ && square > kMinQuickLength * kMinQuickLength && square < kMaxQuickLength * kMaxQuickLength;
  if (metric_ == Metric::cosine)
    return {row, square > 0 ? 1 / std::sqrt(square) : 0, square > 0 ? 1.0 : 0.0, quick};
  return {row, factor_, square * (factor_ * factor_), quick};
}

template <class T>
void Space<T>::normalize(const Query<T>& query, float* out) const {
  shift_and_scale(query.row, center_.data(), query.factor, points_.d, out);
}

template <class T>
void Space<T>::normalize(const Query<T>& query, double* out) const {
  for (std::int64_t j = 0; j < points_.d; ++j)
    out[j] = (static_cast<double>(query.row[j]) - center_[j]) * query.factor;
}

#define AGGLO_SPACE(T) template class Space<T>;
AGGLO_EACH_NUMBER(AGGLO_SPACE)

}  // namespace agglo
