// Nearly all nearest neighbours of all points, at a fraction of the cost of an exact search.
#pragma once

#include <cstdint>

#include "neighbors.hpp"
#include "parallel.hpp"
#include "recall.hpp"
#include "space.hpp"

namespace agglo {

struct Effort {
  std::int64_t size = 0;    // points in a cell; 0: chosen
  std::int64_t visits = 0;  // cells that each point visits; 0: chosen
  std::int64_t joins = -1;  // passes over the neighbours of neighbours; -1: chosen
  std::int64_t rounds = 0;  // partitions into cells that were made; not a wish
};

struct Approximation {
  Neighbors neighbors;
  Recall recall;
  Effort effort;  // what was spent
};

// Like `nearest`, but each list holds the k closest of those that were looked at: pairs of which one point
// has visited the cell of the other, and neighbours of neighbours. Values are exact. What is looked at is a
// function of the points, the seed and BLAS alone. Effort that is left to be chosen is spent until `recall`
// is reached on the sample, or `patience` partitions have been tried.
//
// Memory beside points and result: as for `nearest` without a basis, and 4 * (k + visits) + 100 bytes a
// point.
template <class T>
Approximation nearly_nearest(const Points<T>& points, std::int64_t k, Metric metric, double recall,
                             const Effort& wish, std::int64_t sample, std::int64_t patience,
                             std::uint64_t seed, const Blas& blas, Team& team, const Report& report = {});

}  // namespace agglo
