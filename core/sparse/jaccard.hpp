// Exact k nearest neighbours of sets by Jaccard distance.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "sparse/inverted_search.hpp"

namespace agglo {

// A set is a sparse row without values. Its columns are the members.
using Sets = SparseRows<float>;

// Return the k nearest other sets of every set, sorted by (distance, smaller index). 1 <= k < n.
// Only sets with common members are neighbours. Shorter lists are filled with -1.
//
// The Jaccard distance is 1 - |intersection| / |union|. The distance of two empty sets is 0.
// Sets have at most 2^24 members.
// Memory besides sets and result: 4 bytes per member, about 30 per set, and 8 per set and thread.
Neighbors jaccard_neighbors(const Sets& sets, std::int64_t k, ThreadPool& pool, const Report& report = {});

// The first `base` sets are the points, and the other sets are queries.
// Return the k nearest points of each query, 1 <= k <= base.
Neighbors jaccard_query(const Sets& sets, std::int64_t base, std::int64_t k, ThreadPool& pool,
                        const Report& report = {});

// Return the distances of all pairs: n - 1 values per set, in increasing order of the other set's index.
std::vector<float> pairwise_jaccard(const Sets& sets, ThreadPool& pool, const Report& report = {});

// Return the similarity function that ranks neighbours in these searches. The sets must outlive it.
PairSimilarity jaccard_similarity(const Sets& sets);

}  // namespace agglo
