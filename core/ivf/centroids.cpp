#include "ivf/centroids.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "simd/dot.hpp"
#include "simd/filter.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kIterations = 4;         // of k-means
constexpr std::int64_t kSample = 40;   // centres for every group that its leader is found from
constexpr std::int64_t kRows = 256;    // rows that are multiplied with all leaders at a time
constexpr std::int64_t kMembers = 64;  // of a group, where several are looked for
constexpr std::int64_t kLook = 12;     // centres that are looked at for each that is looked for,
constexpr std::int64_t kLeast = 1024;  // and in all, at least
constexpr std::int64_t kFew = 4;       // times as many, at most: then all are looked at

}  // namespace

float half_square(const float* row, std::int64_t width) { return quick_dot(row, row, width) / 2; }

std::int64_t closest(float* products, const float* offsets, std::int64_t n) {
  constexpr std::int64_t lanes = 16;  // so that it takes wide registers
  float most[lanes];
  std::fill_n(most, lanes, -kInfinity);
  std::int64_t c = 0;
  for (; c + lanes <= n; c += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) {
      products[c + l] -= offsets[c + l];
      most[l] = most[l] < products[c + l] ? products[c + l] : most[l];
    }
  for (; c < n; ++c) {
    products[c] -= offsets[c];
    most[0] = std::max(most[0], products[c]);
  }
  return std::find(products, products + n, *std::max_element(most, most + lanes)) - products;
}

Centers light_means(const float* rows, std::int64_t n, std::int64_t width, std::int64_t count) {
  Centers means{width, {}, {}};
  for (std::int64_t c = 0; c < count; ++c) {
    const float* row = rows + (2 * c + 1) * n / (2 * count) * width;
    means.add(row, half_square(row, width));
  }
  std::vector<float> products, sums;
  std::vector<std::int64_t> sizes;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    sums.assign(count * width, 0.0f);
    sizes.assign(count, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      if (i % kRows == 0)
        multiply_rows(rows + i * width, std::min(kRows, n - i), means.rows.data(), count, width, products);
      const std::int64_t c = closest(products.data() + i % kRows * count, means.offsets.data(), count);
      ++sizes[c];
      for (std::int64_t j = 0; j < width; ++j) sums[c * width + j] += rows[i * width + j];
    }
    for (std::int64_t c = 0; c < count; ++c) {
      if (sizes[c] == 0) continue;
      float* mean = means.rows.data() + c * width;
      for (std::int64_t j = 0; j < width; ++j) mean[j] = sums[c * width + j] / static_cast<float>(sizes[c]);
      means.offsets[c] = half_square(mean, width);
    }
  }
  return means;
}

Groups::Groups(const Centers& centers, std::int64_t groups, std::int64_t probes, ThreadPool& pool)
    : probes_(std::min(probes, groups)),
      leaders_{centers.width, {}, {}},
      members_{centers.width, {}, {}},
      ids_(centers.count()),
      begins_(groups + 1, 0) {
  const std::int64_t n = centers.count(), width = centers.width, m = std::min(n, kSample * groups);
  std::vector<float> sample;
  for (std::int64_t s = 0; s < m; ++s)
    sample.insert(sample.end(), centers.row(s * n / m), centers.row(s * n / m) + width);
  leaders_ = light_means(sample.data(), m, width, groups);
  std::vector<std::int64_t> group(n);
  pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    std::vector<float> products;
    multiply_rows(centers.row(first), last - first, leaders_.rows.data(), groups, width, products);
    for (std::int64_t c = first; c < last; ++c)
      group[c] = closest(products.data() + (c - first) * groups, leaders_.offsets.data(), groups);
  });
  std::iota(ids_.begin(), ids_.end(), 0);
  std::stable_sort(ids_.begin(), ids_.end(),
                   [&](std::int32_t a, std::int32_t b) { return group[a] < group[b]; });
  for (const std::int32_t c : ids_) {
    ++begins_[group[c] + 1];
    members_.add(centers.row(c), centers.offsets[c]);
  }
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  // Where it is products that count they do so for groups, too.
  if (std::all_of(centers.offsets.begin(), centers.offsets.end(), [](float offset) { return offset == 0; }))
    std::fill(leaders_.offsets.begin(), leaders_.offsets.end(), 0.0f);
}

// Calls take(row, first, count, products) for each of n rows and each group that it looks into, which are
// `count` members from `first` on. Rows that would see fewer than `least` members look into all groups.
template <class Take>
void Groups::look(const float* rows, std::int64_t n, std::int64_t least, Scratch& s, const Take& take) const {
  const std::int64_t width = leaders_.width, groups = leaders_.count();
  s.asking.resize(groups);
  for (auto& asking : s.asking) asking.clear();
  s.found.resize(groups);
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % kRows == 0)
      multiply_rows(rows + i * width, std::min(kRows, n - i), leaders_.rows.data(), groups, width,
                    s.products);
    float* closeness = s.products.data() + i % kRows * groups;
    for (std::int64_t g = 0; g < groups; ++g) closeness[g] -= leaders_.offsets[g];
    const float bar = std::nextafter(reached_by(probes_, closeness, groups), -kInfinity);
    int count = larger(closeness, groups, bar, s.found.data());
    std::int64_t seen = 0;
    for (int f = 0; f < count; ++f) seen += begins_[s.found[f] + 1] - begins_[s.found[f]];
    if (seen < least) count = larger(closeness, groups, -kInfinity, s.found.data());
    for (int f = 0; f < count; ++f) s.asking[s.found[f]].push_back(static_cast<std::int32_t>(i));
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t count = begins_[g + 1] - begins_[g],
                       asking = static_cast<std::int64_t>(s.asking[g].size());
    if (count == 0 || asking == 0) continue;
    s.rows.resize(asking * width);
    for (std::int64_t a = 0; a < asking; ++a)
      std::copy_n(rows + s.asking[g][a] * width, width, s.rows.data() + a * width);
    multiply_rows(s.rows.data(), asking, members_.row(begins_[g]), count, width, s.products);
    for (std::int64_t a = 0; a < asking; ++a)
      take(s.asking[g][a], begins_[g], count, s.products.data() + a * count);
  }
}

void Groups::one(const float* rows, std::int64_t n, Scratch& s, std::int32_t* out) const {
  s.best.assign(n, -kInfinity);
  look(rows, n, 1, s, [&](std::int64_t i, std::int64_t first, std::int64_t count, float* products) {
    const std::int64_t c = closest(products, members_.offsets.data() + first, count);
    if (products[c] <= s.best[i]) return;
    s.best[i] = products[c];
    out[i] = ids_[first + c];
  });
}

void Groups::several(const float* rows, std::int64_t n, std::int64_t reach, Scratch& s,
                     std::int32_t* out) const {
  s.closenesses.assign(n, {});
  s.seen.assign(n, {});
  look(rows, n, reach, s, [&](std::int64_t i, std::int64_t first, std::int64_t count, const float* products) {
    for (std::int64_t c = 0; c < count; ++c)
      s.closenesses[i].push_back(products[c] - members_.offsets[first + c]);
    s.seen[i].insert(s.seen[i].end(), ids_.begin() + first, ids_.begin() + first + count);
  });
  std::vector<std::pair<float, std::int32_t>> best;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& closenesses = s.closenesses[i];
    const float bar = reached_by(reach, closenesses.data(), static_cast<std::int64_t>(closenesses.size()));
    best.clear();
    for (std::size_t c = 0; c < closenesses.size(); ++c)
      if (closenesses[c] >= bar) best.push_back({-closenesses[c], s.seen[i][c]});
    std::sort(best.begin(), best.end());
    for (std::int64_t r = 0; r < reach; ++r) out[i * reach + r] = best[r].second;
  }
}

std::vector<std::int32_t> close_centers(const Centers& centers, std::int64_t reach, ThreadPool& pool,
                                        const Report& report) {
  constexpr std::int64_t block = 64;
  const std::int64_t n = centers.count(), look = std::max(kLeast, kLook * reach);
  const Groups groups(centers, n <= kFew * look ? 1 : n / kMembers, look / kMembers, pool);
  std::vector<std::int32_t> close(n * reach);
  std::vector<Groups::Scratch> scratch(pool.size());
  pool.ranges(
      n, block,
      [&](std::int64_t first, std::int64_t last, int worker) {
        groups.several(centers.row(first), last - first, reach, scratch[worker],
                       close.data() + first * reach);
        for (std::int64_t c = first; c < last; ++c) {  // the centre itself, whatever rounding says
          std::int32_t* own = close.data() + c * reach;
          std::int32_t* place = std::find(own, own + reach, static_cast<std::int32_t>(c));
          if (place == own + reach) *--place = static_cast<std::int32_t>(c);
          std::rotate(own, place, place + 1);
        }
      },
      report);
  return close;
}

}  // namespace agglo
