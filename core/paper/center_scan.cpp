#include "paper/center_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "base/numbers.hpp"
#include "simd/dot.hpp"

namespace agglo::paper {
namespace {

constexpr std::int64_t kBlock = 512;  // maximum number of rows, and of centers, per matrix product
// The maximum size of a block of rows or centers, in numbers.
constexpr std::int64_t kPanel = 512 * 1024;
constexpr std::int64_t kRows = 1024;  // rows per chunk of other parallel work
// The maximum number of columns. With more columns, the error bound of float32 products would be too large to
// exclude pairs.
constexpr std::int64_t kMaxColumns = 1 << 22;

// Returns the lowest score, offsets[j] - products[j], of one row over `width` centers.
float lowest(const float* offsets, const float* products, std::int64_t width) {
  constexpr int kLanes = 16;  // number of partial minima, which fill a wide register
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, std::numeric_limits<float>::infinity());
  std::int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const float score = offsets[c + lane] - products[c + lane];
      lanes[lane] = score < lanes[lane] ? score : lanes[lane];
    }
  for (; c < width; ++c) lanes[0] = std::min(lanes[0], offsets[c] - products[c]);
  return *std::min_element(lanes, lanes + kLanes);
}

}  // namespace

std::vector<std::int32_t> index_range(std::int64_t first, std::int64_t last) {
  std::vector<std::int32_t> ids(last - first);
  std::iota(ids.begin(), ids.end(), static_cast<std::int32_t>(first));
  return ids;
}

CenterScan::CenterScan(const AnyPoints& points, Gemm<float>* sgemm, ThreadPool& pool)
    : points_(points), sgemm_(sgemm) {
  const std::int64_t n = points.n, d = points.d;
  if (d > kMaxColumns)
    throw std::invalid_argument("points of at most " + std::to_string(kMaxColumns) +
                                " columns can be clustered, got " + std::to_string(d) +
                                "; reduce their dimension first");
  block_ = std::min(kBlock, std::max<std::int64_t>(64, kPanel / d / 64 * 64));
  origin_.assign(d, 0.0);
  const std::int64_t sample = std::min<std::int64_t>(n, 1024);
  std::vector<double> row(d);
  for (std::int64_t s = 0; s < sample; ++s) {
    widen_row(points, s * n / sample, row.data());
    for (std::int64_t j = 0; j < d; ++j) origin_[j] += row[j] / static_cast<double>(sample);
  }
  std::vector<double> longest((n + kRows - 1) / kRows);
  pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    std::vector<double> shifted(d);
    double most = 0;
    for (std::int64_t i = first; i < last; ++i) {
      widen_row(points, i, shifted.data());
      for (std::int64_t j = 0; j < d; ++j) shifted[j] -= origin_[j];
      most = std::max(most, dot(shifted.data(), shifted.data(), d));
    }
    longest[first / kRows] = most;
  });
  const double most = *std::max_element(longest.begin(), longest.end());
  // The scale is a power of two, which causes no rounding. The square of the scale must stay finite.
  if (most > 0) scale_ = std::clamp(unit_scale(most), 0x1p-500, 0x1p500);
  // Let x be a point, c a center, and d the number of columns.
  // The error of their float32 dot product is at most gamma |x||c|, for any order of the sum.
  // gamma |x||c| is at most gamma (|x|^2 + |c|^2) / 2.
  // x, c, scores and thresholds are rounded, too. An allowance of 16 units covers the errors of these
  // roundings.
  const double unit = std::numeric_limits<float>::epsilon() / 2;
  const double gamma = static_cast<double>(d) * unit / (1 - static_cast<double>(d) * unit);
  relative_ = gamma / 2 + 16 * unit;
  absolute_ = static_cast<double>(d) * std::numeric_limits<float>::min();
}

// Shifts and scales a row, writes it in float32, and returns its squared length.
double CenterScan::panel(const double* x, float* out) const {
  double sums[4] = {};
  for (std::int64_t j = 0; j < points_.d; ++j) {
    const double shifted = (x[j] - origin_[j]) * scale_;
    out[j] = static_cast<float>(shifted);
    sums[j % 4] += shifted * shifted;
  }
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

void CenterScan::pairs(std::span<const std::int32_t> rows, const double* centers,
                       std::span<const std::int32_t> ids, bool only_nearest, Scratch& scratch,
                       const Reach& reach, const Visit& visit) const {
  const std::int64_t d = points_.d, height = static_cast<std::int64_t>(rows.size());
  scratch.rows.resize(height * d);
  scratch.squares.resize(height);
  scratch.slack.resize(height);
  scratch.row.resize(d);
  for (std::int64_t r = 0; r < height; ++r) {
    widen_row(points_, rows[r], scratch.row.data());
    scratch.squares[r] = panel(scratch.row.data(), scratch.rows.data() + r * d);
    scratch.slack[r] = static_cast<float>(slack(scratch.squares[r]));
  }
  const std::int64_t count = static_cast<std::int64_t>(ids.size());
  for (std::int64_t left = 0; left < count; left += block_) {
    const std::int64_t width = std::min(block_, count - left);
    scratch.columns.resize(width * d);
    scratch.offsets.resize(width);
    scratch.found.resize(width);
    double most = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      const double square = panel(centers + ids[left + c] * d, scratch.columns.data() + c * d);
      scratch.offsets[c] = static_cast<float>(square / 2 - slack(square));
      most = std::max(most, slack(square));
    }
    multiply_blas(sgemm_, scratch.rows.data(), height, scratch.columns.data(), width, d, scratch.products);
    for (std::int64_t r = 0; r < height; ++r) {
      const float* products = scratch.products.data() + r * width;
      const auto limit = [&] {
        return static_cast<float>((reach(r) * (scale_ * scale_) - scratch.squares[r]) / 2) + scratch.slack[r];
      };
      float threshold = limit();
      const float least = lowest(scratch.offsets.data(), products, width);
      if (!(least <= threshold)) continue;  // in nearly all blocks, no center is close
      if (only_nearest)
        threshold = std::min(threshold, least + 2 * (static_cast<float>(most) + scratch.slack[r]));
      std::int64_t candidates = 0;
      for (std::int64_t c = 0; c < width; ++c) {
        scratch.found[candidates] = static_cast<std::int32_t>(c);
        candidates += scratch.offsets[c] - products[c] <= threshold;
      }
      widen_row(points_, rows[r], scratch.row.data());
      for (std::int64_t s = 0; s < candidates; ++s) {
        const std::int64_t c = scratch.found[s];
        const double* center = centers + ids[left + c] * d;
        visit(r, left + c, squared_distance(scratch.row.data(), center, d));
      }
    }
  }
}

void CenterScan::nearest(std::span<const std::int32_t> rows, const double* centers,
                         std::span<const std::int32_t> ids, std::vector<double>& square,
                         std::vector<std::int32_t>& label, ThreadPool& pool, const Report& report) {
  if (rows.empty() || ids.empty()) return;
  scratch_.resize(pool.size());
  const std::int64_t height = static_cast<std::int64_t>(rows.size());
  const std::int64_t width = static_cast<std::int64_t>(ids.size());
  const std::int64_t strips = (height + block_ - 1) / block_;
  // If there are few rows and many centers, several workers compare the same rows with different centers.
  const std::int64_t most = (width + block_ - 1) / block_;
  const std::int64_t parts = strips >= 2 * pool.size() ? 1 : std::min<std::int64_t>(most, 2 * pool.size());
  std::vector<std::pair<double, std::int32_t>> best(height * parts);
  pool.run(
      strips * parts,
      [&](std::int64_t chunk, int worker) {
        const std::int64_t strip = chunk / parts, part = chunk % parts;
        const std::int64_t first = strip * block_, last = std::min(height, first + block_);
        const std::int64_t from = most * part / parts * block_;
        const std::int64_t to = std::min(width, most * (part + 1) / parts * block_);
        auto* found = best.data() + part * height + first;
        for (std::int64_t r = first; r < last; ++r) found[r - first] = {square[rows[r]], label[rows[r]]};
        pairs(
            rows.subspan(first, last - first), centers, ids.subspan(from, to - from), true, scratch_[worker],
            [&](std::int64_t r) { return found[r].first; },
            [&](std::int64_t r, std::int64_t c, double distance) {
              found[r] = std::min(found[r], {distance, ids[from + c]});
            });
      },
      report);
  for (std::int64_t r = 0; r < height; ++r)
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto& found = best[part * height + r];
      if (found < std::pair(square[rows[r]], label[rows[r]]))
        std::tie(square[rows[r]], label[rows[r]]) = found;
    }
}

}  // namespace agglo::paper
