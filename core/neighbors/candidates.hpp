// Selects the nearest neighbours of points among candidates whose float32 values are known.
#pragma once

#include <cstdint>
#include <functional>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/graph.hpp"

namespace agglo {

// The closeness of two points that searches rank by: float64, the larger the closer, the same for (j, i). It
// is called from several threads at once.
using PairCloseness = std::function<double(std::int32_t, std::int32_t)>;

// The k closest targets of each row of directed edges, or all if they are fewer, no target twice: k of each
// in turn, -1 and the weight 0 where there are no more. Weights are closeness rounded to float32. If the k-th
// and the next candidate have the same weight, candidates of that weight are ranked by (closeness, smaller
// target). So the k targets are those of a search that compares the row with all its candidates.
Neighbors select_closest(const DirectedView& rows, std::int64_t k, Kind kind, const PairCloseness& closeness,
                         ThreadPool& pool);

}  // namespace agglo
