#include "ivf/seeds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "ivf/centroids.hpp"
#include "neighbors/recall.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

// The number of rows per chunk of parallel work. It is so large that several rows probe each group of
// centroids.
constexpr std::int64_t kRows = 8192;
constexpr std::int64_t kBlock = 256;  // number of rows that are compared with all centroids at once
constexpr std::int64_t kProbes = 8;   // number of groups of seed points that a point probes
// A sample of 1 / kSampling of all points first shows which seed points attract too few points.
constexpr std::int64_t kSampling = 8;
constexpr std::int64_t kSeedsPerPart = 4;

}  // namespace

void assign_to_centroids(const RowSource& source, std::span<const std::int32_t> positions,
                         const Centroids& centroids, std::int64_t n_probes, ThreadPool& pool,
                         const Report& report, std::span<std::int32_t> out) {
  if (n_probes >= centroids.count()) {
    pool.ranges(
        static_cast<std::int64_t>(positions.size()), kBlock,
        [&](std::int64_t first, std::int64_t last, int) {
          thread_local std::vector<float> rows, products;
          const auto some = positions.subspan(first, last - first);
          source.gather(some, rows);
          multiply_rows(rows.data(), last - first, centroids.rows.data(), centroids.count(), centroids.width,
                        products);
          for (std::int64_t i = 0; i < last - first; ++i)
            out[some[i]] = static_cast<std::int32_t>(argmax_score(
                products.data() + i * centroids.count(), centroids.offsets.data(), centroids.count()));
        },
        report);
    return;
  }
  const auto balanced =
      static_cast<std::int64_t>(std::sqrt(static_cast<double>(n_probes * centroids.count())));
  const CentroidIndex index(centroids, std::min(balanced, centroids.count()), n_probes, pool);
  std::vector<CentroidIndex::Scratch> scratch(pool.size());
  pool.ranges(
      static_cast<std::int64_t>(positions.size()), kRows,
      [&](std::int64_t first, std::int64_t last, int worker) {
        thread_local std::vector<float> rows;
        const auto some = positions.subspan(first, last - first);
        std::vector<std::int32_t> found(some.size());
        source.gather(some, rows);
        index.find_nearest(rows.data(), last - first, scratch[worker], found.data());
        for (std::size_t i = 0; i < some.size(); ++i) out[some[i]] = found[i];
      },
      report);
}

Csr seed_partition(const RowSource& source, std::int64_t size, std::uint64_t seed, ThreadPool& pool,
                   const Report& report) {
  const std::int64_t n = source.n(), width = source.width(), min_size = size / kSeedsPerPart;
  Centroids centroids{width, {}, {}};
  {
    std::vector<float> rows;
    const std::vector<std::int32_t> seeds = random_sample(n, kSeedsPerPart * n / size, seed);
    source.gather(seeds, rows);
    for (std::size_t s = 0; s < seeds.size(); ++s)
      centroids.add(rows.data() + s * width, half_squared_norm(rows.data() + s * width, width));
  }
  std::vector<std::int32_t> part(n);
  const auto assign = [&](std::span<const std::int32_t> positions) {
    assign_to_centroids(source, positions, centroids, kProbes, pool, report, part);
  };
  // Removes every centroid to which fewer than `enough` of the given positions are assigned.
  // The positions of a removed centroid get part -1.
  // At least one centroid remains, because `enough` is not larger than the mean number of positions.
  const auto drop_small = [&](std::span<const std::int32_t> positions, std::int64_t enough) {
    std::vector<std::int64_t> sizes(centroids.count(), 0);
    for (const std::int32_t p : positions) ++sizes[part[p]];
    Centroids left{width, {}, {}};
    std::vector<std::int32_t> renamed(sizes.size(), -1);
    for (std::int64_t c = 0; c < centroids.count(); ++c) {
      if (sizes[c] < enough) continue;
      renamed[c] = static_cast<std::int32_t>(left.count());
      left.add(centroids.row(c), centroids.offsets[c]);
    }
    for (const std::int32_t p : positions) part[p] = renamed[part[p]];
    centroids = std::move(left);
  };
  std::vector<std::int32_t> positions = random_sample(n, n / kSampling, seed + 1);
  assign(positions);
  drop_small(positions, std::max<std::int64_t>(1, min_size / kSampling));
  positions.resize(n);
  std::iota(positions.begin(), positions.end(), 0);
  assign(positions);
  drop_small(positions, min_size);
  std::erase_if(positions, [&](std::int32_t p) { return part[p] >= 0; });
  assign(positions);

  return group_by_label(std::span<const std::int32_t>(part), centroids.count());
}

}  // namespace agglo
