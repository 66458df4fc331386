// Selection of the nearest neighbours among candidates whose float32 values are known.
#pragma once

#include <cstdint>
#include <functional>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/graph.hpp"

namespace agglo {

// The exact similarity of two points, by which searches rank: float64, larger is closer, the same for (j, i).
// It must be safe to call from several threads.
using PairSimilarity = std::function<double(std::int32_t, std::int32_t)>;

// Return the k nearest distinct targets of each row of directed edges. If there are fewer, -1 and the weight
// 0 fill the row.
//
// Weights are similarities or distances rounded to float32. If the k-th and the next candidate tie,
// candidates of that weight are ranked by (exact similarity, smaller target). So the result is that of an
// exact search among the candidates.
Neighbors select_nearest(const DirectedView& rows, std::int64_t k, Kind kind,
                         const PairSimilarity& similarity, ThreadPool& pool);

}  // namespace agglo
