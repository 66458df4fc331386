#include "ivf/centroids.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "simd/dot.hpp"
#include "simd/filter.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kIterations = 4;           // iterations of k-means
constexpr std::int64_t kSample = 40;     // size of the training sample of k-means, in centroids per group
constexpr std::int64_t kRows = 256;      // rows per matrix product
constexpr std::int64_t kGroupSize = 64;  // size of a group of centroids in nearest_centroids()
constexpr std::int64_t kSeen = 12;  // nearest_centroids() compares kSeen * k centroids to find the k nearest
constexpr std::int64_t kMinSeen = 1024;  // nearest_centroids() compares at least this number of centroids
// nearest_centroids() compares all centroids if these are at most kAll times the usual number.
constexpr std::int64_t kAll = 4;

}  // namespace

float half_squared_norm(const float* row, std::int64_t width) { return quick_dot(row, row, width) / 2; }

std::int64_t argmax_score(float* products, const float* offsets, std::int64_t n) {
  constexpr std::int64_t lanes = 16;  // number of partial maxima, which fill a wide register
  float largest[lanes];
  std::fill_n(largest, lanes, -kInfinity);
  std::int64_t c = 0;
  for (; c + lanes <= n; c += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) {
      products[c + l] -= offsets[c + l];
      largest[l] = largest[l] < products[c + l] ? products[c + l] : largest[l];
    }
  for (; c < n; ++c) {
    products[c] -= offsets[c];
    largest[0] = std::max(largest[0], products[c]);
  }
  return std::find(products, products + n, *std::max_element(largest, largest + lanes)) - products;
}

Centroids run_kmeans(const float* rows, std::int64_t n, std::int64_t width, std::int64_t count) {
  Centroids means{width, {}, {}};
  for (std::int64_t c = 0; c < count; ++c) {
    const float* row = rows + (2 * c + 1) * n / (2 * count) * width;
    means.add(row, half_squared_norm(row, width));
  }
  std::vector<float> products, sums;
  std::vector<std::int64_t> sizes;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    sums.assign(count * width, 0.0f);
    sizes.assign(count, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      if (i % kRows == 0)
        multiply_rows(rows + i * width, std::min(kRows, n - i), means.rows.data(), count, width, products);
      const std::int64_t c = argmax_score(products.data() + i % kRows * count, means.offsets.data(), count);
      ++sizes[c];
      for (std::int64_t j = 0; j < width; ++j) sums[c * width + j] += rows[i * width + j];
    }
    for (std::int64_t c = 0; c < count; ++c) {
      if (sizes[c] == 0) continue;
      float* mean = means.rows.data() + c * width;
      for (std::int64_t j = 0; j < width; ++j) mean[j] = sums[c * width + j] / static_cast<float>(sizes[c]);
      means.offsets[c] = half_squared_norm(mean, width);
    }
  }
  return means;
}

CentroidIndex::CentroidIndex(const Centroids& centroids, std::int64_t n_groups, std::int64_t n_probes,
                             ThreadPool& pool)
    : n_probes_(std::min(n_probes, n_groups)),
      groups_{centroids.width, {}, {}},
      members_{centroids.width, {}, {}} {
  const std::int64_t n = centroids.count(), width = centroids.width, m = std::min(n, kSample * n_groups);
  std::vector<float> sample;
  for (std::int64_t s = 0; s < m; ++s)
    sample.insert(sample.end(), centroids.row(s * n / m), centroids.row(s * n / m) + width);
  groups_ = run_kmeans(sample.data(), m, width, n_groups);
  std::vector<std::int64_t> group(n);
  pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    std::vector<float> products;
    multiply_rows(centroids.row(first), last - first, groups_.rows.data(), n_groups, width, products);
    for (std::int64_t c = first; c < last; ++c)
      group[c] = argmax_score(products.data() + (c - first) * n_groups, groups_.offsets.data(), n_groups);
  });
  ids_ = group_by_label(std::span<const std::int64_t>(group), n_groups);
  for (const std::int32_t c : ids_.indices) members_.add(centroids.row(c), centroids.offsets[c]);
  // Under dot product, the offset of every centroid is 0. So the offset of every group is 0, too.
  if (std::all_of(centroids.offsets.begin(), centroids.offsets.end(),
                  [](float offset) { return offset == 0; }))
    std::fill(groups_.offsets.begin(), groups_.offsets.end(), 0.0f);
}

// Calls visit(row, first, count, products) for each of n rows and each group that the row probes.
// The group consists of the `count` members that start at `first`.
// `products` holds the dot products of the row and these members.
// If the nearest groups of a row have fewer than `min_seen` members in total, the row probes all groups.
template <class Visit>
void CentroidIndex::probe(const float* rows, std::int64_t n, std::int64_t min_seen, Scratch& s,
                          const Visit& visit) const {
  const std::int64_t width = groups_.width, n_groups = groups_.count();
  s.queries.resize(n_groups);
  for (auto& queries : s.queries) queries.clear();
  s.selected.resize(n_groups);
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % kRows == 0)
      multiply_rows(rows + i * width, std::min(kRows, n - i), groups_.rows.data(), n_groups, width,
                    s.products);
    float* scores = s.products.data() + i % kRows * n_groups;
    for (std::int64_t g = 0; g < n_groups; ++g) scores[g] -= groups_.offsets[g];
    const float threshold = std::nextafter(top_k_threshold(n_probes_, scores, n_groups), -kInfinity);
    int count = select_larger(scores, n_groups, threshold, s.selected.data());
    std::int64_t seen = 0;
    for (int f = 0; f < count; ++f) seen += ids_.row_size(s.selected[f]);
    if (seen < min_seen) count = select_larger(scores, n_groups, -kInfinity, s.selected.data());
    for (int f = 0; f < count; ++f) s.queries[s.selected[f]].push_back(static_cast<std::int32_t>(i));
  }
  for (std::int64_t g = 0; g < n_groups; ++g) {
    const std::int64_t first = ids_.indptr[g], count = ids_.row_size(g),
                       n_queries = static_cast<std::int64_t>(s.queries[g].size());
    if (count == 0 || n_queries == 0) continue;
    s.rows.resize(n_queries * width);
    for (std::int64_t q = 0; q < n_queries; ++q)
      std::copy_n(rows + s.queries[g][q] * width, width, s.rows.data() + q * width);
    multiply_rows(s.rows.data(), n_queries, members_.row(first), count, width, s.products);
    for (std::int64_t q = 0; q < n_queries; ++q)
      visit(s.queries[g][q], first, count, s.products.data() + q * count);
  }
}

void CentroidIndex::find_nearest(const float* rows, std::int64_t n, Scratch& s, std::int32_t* out) const {
  s.best.assign(n, -kInfinity);
  probe(rows, n, 1, s, [&](std::int64_t i, std::int64_t first, std::int64_t count, float* products) {
    const std::int64_t c = argmax_score(products, members_.offsets.data() + first, count);
    if (products[c] <= s.best[i]) return;
    s.best[i] = products[c];
    out[i] = ids_.indices[first + c];
  });
}

void CentroidIndex::find_k_nearest(const float* rows, std::int64_t n, std::int64_t k, Scratch& s,
                                   std::int32_t* out) const {
  s.scores.assign(n, {});
  s.ids.assign(n, {});
  probe(rows, n, k, s, [&](std::int64_t i, std::int64_t first, std::int64_t count, const float* products) {
    for (std::int64_t c = 0; c < count; ++c) s.scores[i].push_back(products[c] - members_.offsets[first + c]);
    const auto begin = ids_.indices.begin() + first;
    s.ids[i].insert(s.ids[i].end(), begin, begin + count);
  });
  std::vector<std::pair<float, std::int32_t>> best;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& scores = s.scores[i];
    const float threshold = top_k_threshold(k, scores.data(), static_cast<std::int64_t>(scores.size()));
    best.clear();
    for (std::size_t c = 0; c < scores.size(); ++c)
      if (scores[c] >= threshold) best.push_back({-scores[c], s.ids[i][c]});
    std::sort(best.begin(), best.end());
    for (std::int64_t r = 0; r < k; ++r) out[i * k + r] = best[r].second;
  }
}

std::vector<std::int32_t> nearest_centroids(const Centroids& centroids, std::int64_t k, ThreadPool& pool,
                                            const Report& report) {
  constexpr std::int64_t block = 64;
  const std::int64_t n = centroids.count(), seen = std::max(kMinSeen, kSeen * k);
  const CentroidIndex index(centroids, n <= kAll * seen ? 1 : n / kGroupSize, seen / kGroupSize, pool);
  std::vector<std::int32_t> nearest(n * k);
  std::vector<CentroidIndex::Scratch> scratch(pool.size());
  pool.ranges(
      n, block,
      [&](std::int64_t first, std::int64_t last, int worker) {
        index.find_k_nearest(centroids.row(first), last - first, k, scratch[worker],
                             nearest.data() + first * k);
        // Put the centroid itself first, even if rounding errors have ranked another one before it.
        for (std::int64_t c = first; c < last; ++c) {
          std::int32_t* own = nearest.data() + c * k;
          std::int32_t* at = std::find(own, own + k, static_cast<std::int32_t>(c));
          if (at == own + k) *--at = static_cast<std::int32_t>(c);
          std::rotate(own, at, at + 1);
        }
      },
      report);
  return nearest;
}

}  // namespace agglo
