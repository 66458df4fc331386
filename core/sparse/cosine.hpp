// The exact nearest neighbours of sparse rows of numbers, by dot product or cosine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"
#include "sparse/inverted_search.hpp"

namespace agglo {

// The k closest other rows of every row, 1 <= k < n, of those whose similarity is above 0: the first k by
// (similarity, smaller index), and -1 where there are no more. Similarities are summed in float64, in the
// order of a search in dense points, and so are the same to the bit. `metric` is dot or cosine.
//
// Memory beside rows and result: 8 bytes a stored number, some 40 a row, and 8 a row and a thread.
template <class T>
Neighbors nearest(const SparseRows<T>& rows, std::int64_t k, Metric metric, ThreadPool& pool,
                  const Report& report = {});

// The k closest of the first `base` rows for each of the others, 1 <= k <= base, in the same way.
template <class T>
Neighbors nearest_to(const SparseRows<T>& rows, std::int64_t base, std::int64_t k, Metric metric,
                     ThreadPool& pool, const Report& report = {});

// The similarity of every pair: n - 1 values for each row in turn, by the index of the other.
template <class T>
std::vector<float> all_pairs(const SparseRows<T>& rows, Metric metric, ThreadPool& pool,
                             const Report& report = {});

// The closeness that these searches rank by, for rows that outlive it.
template <class T>
PairCloseness pair_closeness(const SparseRows<T>& rows, Metric metric);

}  // namespace agglo
