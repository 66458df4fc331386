// Exact k nearest neighbours by a k-d tree, for points with few columns.
#pragma once

#include <cstdint>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"

namespace agglo {

// Return the same neighbours as `exact_neighbors`.
// With few columns, most pairs of points are never compared. With many columns, nearly all pairs are.
// Memory besides points and result: 8 bytes per number, and 50 bytes per point.
Neighbors kdtree_neighbors(const AnyPoints& points, std::int64_t k, Metric metric, ThreadPool& pool,
                           const Report& report = {});

// Return the same neighbours as `exact_query`: the k nearest points of each query, 1 <= k <= n.
Neighbors kdtree_query(const AnyPoints& queries, const AnyPoints& points, std::int64_t k, Metric metric,
                       ThreadPool& pool, const Report& report = {});

}  // namespace agglo
