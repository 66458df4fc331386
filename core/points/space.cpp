#include "points/space.hpp"

#include <algorithm>
#include <cmath>

namespace agglo {
namespace {

constexpr std::int64_t kRows = 256;     // rows per chunk of parallel work
constexpr std::int64_t kSample = 1024;  // size of the sample whose mean is the center
// If the lengths of points are in this range, float32 products of the original rows are precise enough.
constexpr double kMinQuickLength = 1e-3, kMaxQuickLength = 1e18;

}  // namespace

void widen_row(const AnyPoints& points, std::int64_t i, double* out) {
  with_number_type(points.type,
                   [&]<class T>() { std::copy_n(reinterpret_cast<const T*>(points.row(i)), points.d, out); });
}

Space::Space(const AnyPoints& points, Metric metric, ThreadPool& pool)
    : points_(points), metric_(metric), kernels_(row_kernels(points.type)), center_(points.d, 0.0) {
  const std::int64_t n = points.n, d = points.d;
  if (!is_similarity(metric)) {
    const std::int64_t sample = std::min(n, kSample);
    std::vector<double> mean(d, 0.0), row(d);
    for (std::int64_t s = 0; s < sample; ++s) {
      normalize(s * n / sample, row.data());  // the center is still 0, and the factor is still 1
      for (std::int64_t j = 0; j < d; ++j) mean[j] += row[j] / static_cast<double>(sample);
    }
    center_ = std::move(mean);
  }
  quick_center_.assign(center_.begin(), center_.end());
  if (has_quick_products()) center_.assign(quick_center_.begin(), quick_center_.end());

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
  quick_ = has_quick_products() && length > kMinQuickLength && largest < kMaxQuickLength * kMaxQuickLength;

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

double Space::similarity(const void* x, const void* y, double scale) const {
  if (is_similarity(metric_)) return kernels_.dot(x, y, points_.d) * scale;
  return kernels_.squared_distance(x, y, points_.d) * scale / -2;
}

double Space::quick_similarity(const void* x, const void* y, double scale, bool quick) const {
  if (!quick) return similarity(x, y, scale);
  if (is_similarity(metric_)) return kernels_.quick_dot(x, y, points_.d) * scale;
  return kernels_.quick_squared_distance(x, y, points_.d) * scale / -2;
}

float Space::value(double similarity) const {
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

Query Space::make_query(const void* row) const {
  std::vector<double> shifted(points_.d);
  shift(row, 1, shifted.data());
  const double square = dot(shifted.data(), shifted.data(), points_.d);
  const bool quick =
      quick_ && square > kMinQuickLength * kMinQuickLength && square < kMaxQuickLength * kMaxQuickLength;
  if (metric_ == Metric::cosine)
    return {row, square > 0 ? 1 / std::sqrt(square) : 0, square > 0 ? 1.0 : 0.0, quick};
  return {row, factor_, square * (factor_ * factor_), quick};
}

}  // namespace agglo
