// Exact k nearest neighbours by a k-d tree. A k-d tree is fast for points with few columns.
#pragma once

#include <cstdint>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"

namespace agglo {

// Return the k nearest other points of every point. The result equals the result of `exact_neighbors`.
// With few columns, most pairs of points are never compared.
// With many columns, nearly all pairs of points are compared.
// Besides the points and the result, the search needs 8 bytes per number and 50 bytes per point.
Neighbors kdtree_neighbors(const AnyPoints& points, std::int64_t k, Metric metric, ThreadPool& pool,
                           const Report& report = {});

// Return the k nearest points of each query. The result equals the result of `exact_query`. 1 <= k <= n.
Neighbors kdtree_query(const AnyPoints& queries, const AnyPoints& points, std::int64_t k, Metric metric,
                       ThreadPool& pool, const Report& report = {});

}  // namespace agglo
