// Initial partition of very many points: each point is assigned to its nearest random seed point.
#pragma once

#include <cstdint>
#include <span>

#include "base/csr.hpp"
#include "base/thread_pool.hpp"
#include "ivf/centroids.hpp"
#include "points/rows.hpp"

namespace agglo {

// Set out[p] to the nearest centroid of position p, for each p in `positions`.
//
// If there are at most n_probes centroids, each position is compared with all of them.
// Otherwise the result is approximate: each position probes its `n_probes` nearest groups of centroids.
void assign_to_centroids(const RowSource& source, std::span<const std::int32_t> positions,
                         const Centroids& centroids, std::int64_t n_probes, ThreadPool& pool,
                         const Report& report, std::span<std::int32_t> out);

// Partition all positions by random seed points. Row r of the result holds the positions in part r.
// Four seed points are drawn per `size` points. Seed points with fewer than size / 4 points are dropped.
//
// A tree of k-means splits cannot separate very many clusters.
// The first centroids of a tree are means of many clusters and hardly differ, so splits cut clusters.
// A seed point is a point of a cluster, so it is close to this cluster.
Csr seed_partition(const RowSource& source, std::int64_t size, std::uint64_t seed, ThreadPool& pool,
                   const Report& report);

}  // namespace agglo
