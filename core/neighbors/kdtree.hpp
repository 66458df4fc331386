// The exact nearest neighbours of all points, where these have few columns.
#pragma once

#include <cstdint>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"

namespace agglo {

// The same as `nearest`, by a k-d tree: with few columns most points are never looked at, with many nearly
// all are. Memory beside points and result: 8 bytes for every number, and 50 bytes a point.
template <class T>
Neighbors nearest_by_tree(const Points<T>& points, std::int64_t k, Metric metric, ThreadPool& pool,
                          const Report& report = {});

// The k closest points of each query, 1 <= k <= n, which is none of them.
template <class T>
Neighbors nearest_to_by_tree(const Points<T>& queries, const Points<T>& points, std::int64_t k, Metric metric,
                             ThreadPool& pool, const Report& report = {});

}  // namespace agglo
