// Exact nearest neighbours of sets by Jaccard distance.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "sparse/inverted_search.hpp"

namespace agglo {

// A set is a sparse row without values: its members are its columns.
using Sets = SparseRows<float>;

// Return the k nearest other sets of every set, 1 <= k < n: the first k by (distance, smaller index). Only
// sets with common members are neighbours; -1 fills rows that have fewer.
//
// The Jaccard distance is the share of the union that is not in both. It is 0 for two empty sets. Sets have
// at most 2^24 members. Memory besides sets and result: 4 bytes per member, about 30 per set, and 8 per set
// and thread.
Neighbors jaccard_neighbors(const Sets& sets, std::int64_t k, ThreadPool& pool, const Report& report = {});

// Return the k nearest of the first `base` sets for each of the other sets, the queries. 1 <= k <= base.
Neighbors jaccard_query(const Sets& sets, std::int64_t base, std::int64_t k, ThreadPool& pool,
                        const Report& report = {});

// Return the distance of every pair: n - 1 values for each set in turn, ordered by the index of the other
// set.
std::vector<float> pairwise_jaccard(const Sets& sets, ThreadPool& pool, const Report& report = {});

// Return the similarity by which these searches rank. The sets must outlive it.
PairSimilarity jaccard_similarity(const Sets& sets);

}  // namespace agglo
