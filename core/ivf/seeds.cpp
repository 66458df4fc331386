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

constexpr std::int64_t kRows = 8192;  // places in a chunk of work: so many that a block of them asks a group
constexpr std::int64_t kBlock = 256;  // places that are compared with all centres at a time
constexpr std::int64_t kProbes = 8;   // groups that are looked into
constexpr std::int64_t kSample = 8;   // of so many places one tells which seeds have many around them
constexpr std::int64_t kSeeds = 4;    // for every part of `size`

}  // namespace

void find_closest(const Images& images, std::span<const std::int32_t> places, const Centers& centers,
                  std::int64_t probes, ThreadPool& pool, const Report& report, std::span<std::int32_t> out) {
  if (probes >= centers.count()) {
    pool.ranges(
        static_cast<std::int64_t>(places.size()), kBlock,
        [&](std::int64_t first, std::int64_t last, int) {
          thread_local std::vector<float> rows, products;
          const auto some = places.subspan(first, last - first);
          images.gather(some, rows);
          multiply_rows(rows.data(), last - first, centers.rows.data(), centers.count(), centers.width,
                        products);
          for (std::int64_t i = 0; i < last - first; ++i)
            out[some[i]] = static_cast<std::int32_t>(
                closest(products.data() + i * centers.count(), centers.offsets.data(), centers.count()));
        },
        report);
    return;
  }
  const auto balanced = static_cast<std::int64_t>(std::sqrt(static_cast<double>(probes * centers.count())));
  const Groups groups(centers, std::min(balanced, centers.count()), probes, pool);
  std::vector<Groups::Scratch> scratch(pool.size());
  pool.ranges(
      static_cast<std::int64_t>(places.size()), kRows,
      [&](std::int64_t first, std::int64_t last, int worker) {
        thread_local std::vector<float> rows;
        const auto some = places.subspan(first, last - first);
        std::vector<std::int32_t> found(some.size());
        images.gather(some, rows);
        groups.one(rows.data(), last - first, scratch[worker], found.data());
        for (std::size_t i = 0; i < some.size(); ++i) out[some[i]] = found[i];
      },
      report);
}

Parts scattered(const Images& images, std::int64_t size, std::uint64_t seed, ThreadPool& pool,
                const Report& report) {
  const std::int64_t n = images.n(), width = images.width(), least = size / kSeeds;
  Centers centers{width, {}, {}};
  {
    std::vector<float> rows;
    const std::vector<std::int32_t> seeds = random_sample(n, kSeeds * n / size, seed);
    images.gather(seeds, rows);
    for (std::size_t s = 0; s < seeds.size(); ++s)
      centers.add(rows.data() + s * width, half_square(rows.data() + s * width, width));
  }
  std::vector<std::int32_t> part(n);
  const auto assign = [&](std::span<const std::int32_t> places) {
    find_closest(images, places, centers, kProbes, pool, report, part);
  };
  // Forgets centres of fewer than `enough` of some places; the largest stays, for it has more than the mean.
  // Then -1 is the part of places that had such a centre.
  const auto thin = [&](std::span<const std::int32_t> places, std::int64_t enough) {
    std::vector<std::int64_t> sizes(centers.count(), 0);
    for (const std::int32_t p : places) ++sizes[part[p]];
    Centers left{width, {}, {}};
    std::vector<std::int32_t> renamed(sizes.size(), -1);
    for (std::int64_t c = 0; c < centers.count(); ++c) {
      if (sizes[c] < enough) continue;
      renamed[c] = static_cast<std::int32_t>(left.count());
      left.add(centers.row(c), centers.offsets[c]);
    }
    for (const std::int32_t p : places) part[p] = renamed[part[p]];
    centers = std::move(left);
  };
  std::vector<std::int32_t> places = random_sample(n, n / kSample, seed + 1);
  assign(places);
  thin(places, std::max<std::int64_t>(1, least / kSample));
  places.resize(n);
  std::iota(places.begin(), places.end(), 0);
  assign(places);
  thin(places, least);
  std::erase_if(places, [&](std::int32_t p) { return part[p] >= 0; });
  assign(places);

  Parts parts{std::vector<std::int32_t>(n), std::vector<std::int64_t>(centers.count() + 1, 0)};
  for (std::int64_t p = 0; p < n; ++p) ++parts.begins[part[p] + 1];
  std::partial_sum(parts.begins.begin(), parts.begins.end(), parts.begins.begin());
  std::vector<std::int64_t> place(parts.begins.begin(), parts.begins.end() - 1);
  for (std::int64_t p = 0; p < n; ++p) parts.order[place[part[p]]++] = static_cast<std::int32_t>(p);
  return parts;
}

}  // namespace agglo
