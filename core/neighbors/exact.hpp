// Exact nearest neighbours of all points among all points, by blocks of matrix products.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

// Neighbour lists of equal length k, one per point.
struct Neighbors {
  std::vector<std::int32_t> indices;  // k per point, the nearest first
  std::vector<float> values;
};

// Return the k nearest other points of every point, 1 <= k < n: the first k by (value, smaller index).
//
// Values are summed in float64 from the points as given. Everything else only prunes pairs by bounds, so the
// result depends on the points alone: neither on BLAS, nor on the number of threads, nor on `basis`.
//
// `basis` speeds up the search for points that lie close to a few directions. It is an orthonormal basis of
// these, one vector of d numbers after the other, the most important first. Pairs are then compared by their
// coordinates in the basis first, and in full only if they may be close. If it is empty, all are compared in
// full.
//
// Memory besides points and result: 8 * (k + max(16, k / 4)) + 80 bytes per point, 4 bytes per coordinate in
// the basis, and about 10 MB per thread.
template <class T>
Neighbors exact_neighbors(const Points<T>& points, std::int64_t k, Metric metric,
                          std::span<const double> basis, const Blas& blas, ThreadPool& pool,
                          const Report& report = {});

// Return the value of every pair: n - 1 values for each point in turn, ordered by the index of the other
// point.
template <class T>
std::vector<float> pairwise_values(const Points<T>& points, Metric metric, ThreadPool& pool,
                                   const Report& report = {});

}  // namespace agglo
