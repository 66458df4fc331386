// Selection of the k nearest neighbours of each point among given candidates with float32 weights.
#pragma once

#include <cstdint>
#include <functional>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/graph.hpp"

namespace agglo {

// A function that returns the exact similarity of two points in float64.
// Searches rank neighbours by this similarity. A larger similarity means closer.
// The pairs (i, j) and (j, i) have the same similarity, to the last bit. Several threads may call the
// function at once.
using PairSimilarity = std::function<double(std::int32_t, std::int32_t)>;

// Return the k nearest distinct targets of each row of directed edges, nearest first.
// If a row has fewer than k targets, the missing entries have target -1 and weight 0.
//
// Weights are similarities or distances, rounded to float32.
// If the k-th and the next candidate have equal weights, float32 weights cannot decide between them.
// Then all candidates with this weight are ranked by exact similarity, and ties by smaller target.
// So the result equals the result of an exact search among the candidates.
Neighbors select_nearest(const DirectedView& rows, std::int64_t k, Kind kind,
                         const PairSimilarity& similarity, ThreadPool& pool);

}  // namespace agglo
