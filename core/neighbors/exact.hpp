// Exact k nearest neighbours of all points, found by matrix products of blocks of points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

// Neighbour lists with k entries each, one list per point.
struct Neighbors {
  std::vector<std::int32_t> indices;  // k neighbours per point, nearest first
  std::vector<float> values;
};

// Return the k nearest other points of every point, nearest first. 1 <= k < n.
// If two points are equally near, the point with the smaller index comes first.
//
// The values of the result are summed in float64 from the original points.
// All other computations only prune pairs of points by error bounds.
// So the result depends only on the points, not on BLAS, the number of threads, or `basis`.
//
// A `basis` makes the search faster if the points lie close to a subspace of few dimensions.
// The basis contains orthonormal vectors of d numbers, one after the other, the most important vector first.
// If there is a basis, pairs of points are first compared by their coordinates in the basis.
// Only pairs that may be close are then compared by all columns.
// If the basis is empty, the search does not use coordinates.
//
// Besides the points and the result, the search needs this memory:
// 8 * (k + max(16, k / 4)) + 80 bytes per point, and about 10 MB per thread.
// Each point also needs 4 bytes per coordinate in the basis, and 1 byte per column for int8 codes.
Neighbors exact_neighbors(const AnyPoints& points, std::int64_t k, Metric metric,
                          std::span<const double> basis, const Blas& blas, ThreadPool& pool,
                          const Report& report = {});

// Return the metric's values of all pairs of points: n - 1 values per point.
// The values of a point are in increasing order of the other point's index.
std::vector<float> pairwise_values(const AnyPoints& points, Metric metric, ThreadPool& pool,
                                   const Report& report = {});

}  // namespace agglo
