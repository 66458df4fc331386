// A first partition of very many points: each with the closest of a random choice of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "ivf/centroids.hpp"
#include "neighbors/exact.hpp"
#include "points/rows.hpp"

namespace agglo {

// The places 0..n-1, those of one part after the other, and where each part begins, with n at the end.
struct Parts {
  std::vector<std::int32_t> order;
  std::vector<std::int64_t> begins;
};

// Writes out[p], the closest centre, as far as it is in one of the `probes` groups of them that are closest,
// for some of the places. If there are no more centres than probes, all of them are looked at.
void find_closest(const Images& images, std::span<const std::int32_t> places, const Centers& centers,
                  std::int64_t probes, ThreadPool& pool, const Report& report, std::span<std::int32_t> out);

// Parts around random places, four for every `size` of them, none smaller than a quarter of that.
//
// A tree of splits cannot tell many clusters apart: its first centres are means of many clusters, hardly
// different from each other, and the points of a cluster fall on either side. A seed is as close to its own
// cluster as any point of it.
Parts scattered(const Images& images, std::int64_t size, std::uint64_t seed, ThreadPool& pool,
                const Report& report);

}  // namespace agglo
