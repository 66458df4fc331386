// Exact nearest neighbours of sparse rows by dot product or cosine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"
#include "sparse/inverted_search.hpp"

namespace agglo {

// Return the k nearest other rows of every row, 1 <= k < n: the first k by (similarity, smaller index). Only
// rows of a similarity above 0 are neighbours; -1 fills rows that have fewer. `metric` is dot or cosine.
//
// Similarities are summed in float64 in the order of the dense search, so both give the same bits. Memory
// besides rows and result: 8 bytes per stored number, about 40 per row, and 8 per row and thread.
template <class T>
Neighbors exact_neighbors(const SparseRows<T>& rows, std::int64_t k, Metric metric, ThreadPool& pool,
                          const Report& report = {});

// Return the k nearest of the first `base` rows for each of the other rows, the queries. 1 <= k <= base.
template <class T>
Neighbors exact_query(const SparseRows<T>& rows, std::int64_t base, std::int64_t k, Metric metric,
                      ThreadPool& pool, const Report& report = {});

// Return the similarity of every pair: n - 1 values for each row in turn, ordered by the index of the other
// row.
template <class T>
std::vector<float> pairwise_values(const SparseRows<T>& rows, Metric metric, ThreadPool& pool,
                                   const Report& report = {});

// Return the similarity by which these searches rank. The rows must outlive it.
template <class T>
PairSimilarity pair_similarity(const SparseRows<T>& rows, Metric metric);

}  // namespace agglo
