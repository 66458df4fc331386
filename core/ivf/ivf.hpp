// Nearly all nearest neighbours of all points, at a fraction of the cost of an exact search.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/recall.hpp"
#include "points/space.hpp"

namespace agglo {

struct Effort {
  std::int64_t size = 0;    // points in a cell; 0: chosen
  std::int64_t visits = 0;  // cells that each point visits; 0: chosen
  std::int64_t kept = 0;    // candidates of each point that are compared exactly; 0: chosen
  std::int64_t rounds = 0;  // times that all points went to visit; not a wish
};

struct Approximation {
  Neighbors neighbors;
  Recall recall;
  Effort effort;                    // what was spent
  std::vector<std::int32_t> cells;  // of each point the cell that it is in
};

// Like `nearest`, but each list holds the k closest of those that were compared exactly: of all in the cells
// that a point visits, those that looked closest in bytes. Values are exact. It is a function of the points,
// the basis and the seed alone. Effort that is left to be chosen is what one sample of points takes to
// reach `recall`; it is measured on another, and effort is added while it falls short, `patience` times.
// Where no effort is enough, what comes closest is spent `anyway`, or nothing: then there are no lists,
// unless less effort had seemed to be enough, and recall is that of the sample.
//
// `basis` makes it fast for points that lie close to a few directions: an orthonormal basis of them, one
// vector of d numbers after the other. Points are then seen by their coordinates in it until they are
// compared exactly. Empty: as they are.
//
// Memory beside points and result: a byte for every number of the images, 60 bytes a point, and some MB a
// thread; with a basis four more for every number, before there is a result.
template <class T>
Approximation nearly_nearest(const Points<T>& points, std::int64_t k, Metric metric, double recall,
                             const Effort& wish, std::span<const float> basis, std::int64_t sample,
                             std::int64_t patience, bool anyway, std::uint64_t seed, const Blas& blas,
                             ThreadPool& pool, const Report& report = {});

}  // namespace agglo
