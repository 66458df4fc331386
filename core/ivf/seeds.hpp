// The first partition of very many points: each point is assigned to the nearest of many random seed points.
#pragma once

#include <cstdint>
#include <span>

#include "base/csr.hpp"
#include "base/thread_pool.hpp"
#include "ivf/centroids.hpp"
#include "points/rows.hpp"

namespace agglo {

// Set out[p] to the index of the centroid that is nearest to position p, for each p in `positions`.
//
// If there are at most n_probes centroids, each position is compared with all centroids.
// Otherwise, each position probes its `n_probes` nearest groups of centroids. Then the result is approximate.
void assign_to_centroids(const RowSource& source, std::span<const std::int32_t> positions,
                         const Centroids& centroids, std::int64_t n_probes, ThreadPool& pool,
                         const Report& report, std::span<std::int32_t> out);

// Partition all positions by random seed points. Row r of the result holds the positions in part r.
// For every `size` points, four seed points are drawn at random.
// If a seed point attracts fewer than size / 4 points, it is removed, and its points are reassigned.
//
// A tree of k-means splits cannot separate very many clusters.
// At the top of such a tree, each centroid is the mean of many clusters.
// These centroids hardly differ, so the splits cut through clusters.
// A seed point belongs to a cluster, so it attracts the points of this cluster.
Csr seed_partition(const RowSource& source, std::int64_t size, std::uint64_t seed, ThreadPool& pool,
                   const Report& report);

}  // namespace agglo
