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

// Return the k nearest other rows of every row, nearest first. 1 <= k < n. `metric` is dot or cosine.
// If two rows are equally near, the row with the smaller index comes first.
// Only rows with a similarity above 0 are neighbours.
// If a row has fewer than k neighbours, the remaining entries of its list are -1.
//
// Similarities are summed in float64, in the order of the dense search. So both searches give the same bits.
// Besides the rows and the result, the search needs 8 bytes per stored number and about 40 bytes per row.
// Each thread needs 8 more bytes per row.
template <class T>
Neighbors exact_neighbors(const SparseRows<T>& rows, std::int64_t k, Metric metric, ThreadPool& pool,
                          const Report& report = {});

// Return the k nearest points of each query, nearest first. 1 <= k <= base.
// The first `base` rows are the points. The other rows are the queries.
template <class T>
Neighbors exact_query(const SparseRows<T>& rows, std::int64_t base, std::int64_t k, Metric metric,
                      ThreadPool& pool, const Report& report = {});

// Return the similarities of all pairs of rows: n - 1 values per row.
// The values of a row are in increasing order of the other row's index.
template <class T>
std::vector<float> pairwise_values(const SparseRows<T>& rows, Metric metric, ThreadPool& pool,
                                   const Report& report = {});

// Return a function that computes the exact similarity of two rows, by which the searches above rank
// neighbours. The rows must outlive the returned function.
template <class T>
PairSimilarity pair_similarity(const SparseRows<T>& rows, Metric metric);

}  // namespace agglo
