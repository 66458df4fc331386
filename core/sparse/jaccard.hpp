// Exact k nearest neighbours of sets by Jaccard distance.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "sparse/inverted_search.hpp"

namespace agglo {

// A set is a sparse row without values. The columns of the row are the members of the set.
using Sets = SparseRows<float>;

// Return the k nearest other sets of every set, nearest first. 1 <= k < n.
// If two sets are equally near, the set with the smaller index comes first.
// Only sets with common members are neighbours, apart from empty sets.
// If a set has fewer than k neighbours, the remaining entries of its list are -1.
//
// The Jaccard distance is 1 - |intersection| / |union|. The distance of two empty sets is 0.
// A set may have at most 2^24 members.
// Besides the sets and the result, the search needs 4 bytes per member and about 30 bytes per set.
// Each thread needs 8 more bytes per set.
Neighbors jaccard_neighbors(const Sets& sets, std::int64_t k, ThreadPool& pool, const Report& report = {});

// Return the k nearest points of each query, nearest first. 1 <= k <= base.
// The first `base` sets are the points. The other sets are the queries.
Neighbors jaccard_query(const Sets& sets, std::int64_t base, std::int64_t k, ThreadPool& pool,
                        const Report& report = {});

// Return the distances of all pairs of sets: n - 1 values per set.
// The values of a set are in increasing order of the other set's index.
std::vector<float> pairwise_jaccard(const Sets& sets, ThreadPool& pool, const Report& report = {});

// Return the function by which these searches rank neighbours: minus the Jaccard distance of two sets.
// The sets must outlive the returned function.
PairSimilarity jaccard_similarity(const Sets& sets);

}  // namespace agglo
