#include "points/space.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "simd/dot.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows = 256;     // rows in a chunk of parallel work
constexpr std::int64_t kSample = 1024;  // rows that the centre is the mean of
constexpr double kSmall = 1e-3,
                 kLarge = 1e18;  // lengths of points whose float32 products are as good as images'

}  // namespace

template <class T>
Space<T>::Space(const Points<T>& points, Metric metric, ThreadPool& pool) : points_(points), metric_(metric) {
  const std::int64_t n = points.n, d = points.d;
  std::vector<double> mean(d, 0.0);
  if (!similarity(metric)) {
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
      image(i, shifted.data());
      squares_[i] = dot(shifted.data(), shifted.data(), d);
    }
  });
  const double largest = *std::max_element(squares_.begin(), squares_.end());
  double smallest = largest;
  for (const double square : squares_)
    if (square > 0) smallest = std::min(smallest, square);
  const double length = std::sqrt(metric == Metric::cosine ? smallest : largest);
  quick_ = !std::is_same_v<T, double> && length > kSmall && largest < kLarge * kLarge;

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
void Space<T>::image(std::int64_t i, float* out) const {
  shifted_scaled(points_.row(i), center_.data(), factor(i), points_.d, out);
}

template <class T>
void Space<T>::image(std::int64_t i, double* out) const {
  const T* x = points_.row(i);
  const double scale = factors_.empty() ? factor_ : factors_[i];
  for (std::int64_t j = 0; j < points_.d; ++j) out[j] = (static_cast<double>(x[j]) - center_[j]) * scale;
}

template <class T>
double Space<T>::closeness(std::int64_t i, std::int64_t j) const {
  const T *x = points_.row(i), *y = points_.row(j);
  const double scale = factor(i) * factor(j);
  if (similarity(metric_)) return dot(x, y, points_.d) * scale;
  return squared_distance(x, y, points_.d) * scale / -2;
}

template <class T>
double Space<T>::quick_closeness(std::int64_t i, std::int64_t j) const {
  if constexpr (!std::is_same_v<T, double>) {
    if (quick_) {
      const T *x = points_.row(i), *y = points_.row(j);
      const double scale = factor(i) * factor(j);
      if (similarity(metric_)) return quick_dot(x, y, points_.d) * scale;
      return quick_squared_distance(x, y, points_.d) * scale / -2;
    }
  }
  return closeness(i, j);
}

template <class T>
float Space<T>::value(double closeness) const {
  switch (metric_) {
    case Metric::cosine:
      return static_cast<float>(std::clamp(closeness, -1.0, 1.0));
    case Metric::dot:
      return static_cast<float>(closeness / (factor_ * factor_));
    case Metric::sqeuclidean:
      return static_cast<float>(-2 * closeness / (factor_ * factor_));
    default:
      return static_cast<float>(std::sqrt(-2 * closeness) / factor_);
  }
}

template <class T>
Guest<T> Space<T>::guest(const T* row) const {
  const std::int64_t d = points_.d;
  std::vector<double> shifted(d);
  for (std::int64_t j = 0; j < d; ++j) shifted[j] = static_cast<double>(row[j]) - center_[j];
  const double square = dot(shifted.data(), shifted.data(), d);
  const bool quick = quick_ && square > kSmall * kSmall && square < kLarge * kLarge;
  if (metric_ == Metric::cosine)
    return {row, square > 0 ? 1 / std::sqrt(square) : 0, square > 0 ? 1.0 : 0.0, quick};
  return {row, factor_, square * (factor_ * factor_), quick};
}

template <class T>
void Space<T>::image(const Guest<T>& guest, float* out) const {
  shifted_scaled(guest.row, center_.data(), guest.factor, points_.d, out);
}

template <class T>
void Space<T>::image(const Guest<T>& guest, double* out) const {
  for (std::int64_t j = 0; j < points_.d; ++j)
    out[j] = (static_cast<double>(guest.row[j]) - center_[j]) * guest.factor;
}

template <class T>
double Space<T>::closeness(const Guest<T>& guest, std::int64_t j) const {
  const T* y = points_.row(j);
  const double scale = guest.factor * factor(j);
  if (similarity(metric_)) return dot(guest.row, y, points_.d) * scale;
  return squared_distance(guest.row, y, points_.d) * scale / -2;
}

template <class T>
double Space<T>::quick_closeness(const Guest<T>& guest, std::int64_t j) const {
  if constexpr (!std::is_same_v<T, double>) {
    if (guest.quick) {
      const T* y = points_.row(j);
      const double scale = guest.factor * factor(j);
      if (similarity(metric_)) return quick_dot(guest.row, y, points_.d) * scale;
      return quick_squared_distance(guest.row, y, points_.d) * scale / -2;
    }
  }
  return closeness(guest, j);
}

#define AGGLO_SPACE(T) template class Space<T>;
AGGLO_EACH_NUMBER(AGGLO_SPACE)

}  // namespace agglo
