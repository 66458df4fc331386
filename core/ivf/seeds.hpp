// A first partition of very many points: each point goes to the nearest of randomly drawn seeds.
#pragma once

#include <cstdint>
#include <span>

#include "base/csr.hpp"
#include "base/thread_pool.hpp"
#include "ivf/centroids.hpp"
#include "points/rows.hpp"

namespace agglo {

// Write out[p], the nearest centroid of position p, for some positions.
//
// The search is approximate: it looks into the `n_probes` nearest groups of centroids. If there are at most
// n_probes centroids, it compares with all of them.
void assign_to_centroids(const RowSource& source, std::span<const std::int32_t> positions,
                         const Centroids& centroids, std::int64_t n_probes, ThreadPool& pool,
                         const Report& report, std::span<std::int32_t> out);

// Partition all positions by random seeds: four seeds for every `size` points, of which those with fewer than
// size / 4 points are dropped. Row r of the result holds the positions of part r.
//
// A tree of k-means splits cannot separate many clusters: its first centroids are means of many clusters and
// hardly differ, so clusters are torn apart. A seed is as close to its own cluster as any point of it.
Csr seed_partition(const RowSource& source, std::int64_t size, std::uint64_t seed, ThreadPool& pool,
                   const Report& report);

}  // namespace agglo
