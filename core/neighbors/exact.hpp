// Exact k nearest neighbours of all points, by blocks of matrix products.
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
  std::vector<std::int32_t> indices;  // k per point, nearest first
  std::vector<float> values;
};

// Return the k nearest other points of every point, sorted by (value, smaller index). 1 <= k < n.
//
// Values are summed in float64 from the original points. All other computations only prune pairs by bounds.
// So the result depends only on the points: not on BLAS, the number of threads, or `basis`.
//
// A `basis` makes the search faster if the points lie close to a subspace of few dimensions.
// The basis contains orthonormal vectors of d numbers, one after the other, the most important vector first.
// Pairs are then compared by their coordinates in the basis, and in full only if they may be close.
// If the basis is empty, all pairs are compared in full.
//
// Memory besides points and result: 8 * (k + max(16, k / 4)) + 80 bytes per point,
// 4 bytes per coordinate in the basis, 1 byte per column for codes, and about 10 MB per thread.
Neighbors exact_neighbors(const AnyPoints& points, std::int64_t k, Metric metric,
                          std::span<const double> basis, const Blas& blas, ThreadPool& pool,
                          const Report& report = {});

// Return the values of all pairs: n - 1 values per point, in increasing order of the other point's index.
std::vector<float> pairwise_values(const AnyPoints& points, Metric metric, ThreadPool& pool,
                                   const Report& report = {});

}  // namespace agglo
