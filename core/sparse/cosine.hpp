// Exact k nearest neighbours of sparse rows by dot product or cosine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"
#include "sparse/inverted_search.hpp"

namespace agglo {

// Return the k nearest other rows of every row, sorted by (similarity, smaller index). 1 <= k < n.
// Only rows with a similarity above 0 are neighbours. Shorter lists are filled with -1.
// `metric` is dot or cosine.
//
// Similarities are summed in float64 in the same order as in the dense search, so both give the same bits.
// Memory besides rows and result: 8 bytes per stored number, about 40 per row, and 8 per row and thread.
template <class T>
Neighbors exact_neighbors(const SparseRows<T>& rows, std::int64_t k, Metric metric, ThreadPool& pool,
                          const Report& report = {});

// The first `base` rows are the points, and the other rows are queries.
// Return the k nearest points of each query, 1 <= k <= base.
template <class T>
Neighbors exact_query(const SparseRows<T>& rows, std::int64_t base, std::int64_t k, Metric metric,
                      ThreadPool& pool, const Report& report = {});

// Return the similarities of all pairs: n - 1 values per row, in increasing order of the other row's index.
template <class T>
std::vector<float> pairwise_values(const SparseRows<T>& rows, Metric metric, ThreadPool& pool,
                                   const Report& report = {});

// Return the similarity function that ranks neighbours in these searches. The rows must outlive it.
template <class T>
PairSimilarity pair_similarity(const SparseRows<T>& rows, Metric metric);

}  // namespace agglo
