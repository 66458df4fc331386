// The exact nearest neighbours of sets, by Jaccard distance.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "sparse/inverted_search.hpp"

namespace agglo {

// Rows of columns alone.
using Sets = SparseRows<float>;

// The k closest other sets of every set, 1 <= k < n, of those that have something in common with it: the
// first k by (distance, smaller index), and -1 where there are no more. The Jaccard distance is the share of
// the union that is not in both; that of two empty sets is 0. Sets have at most 2^24 members.
//
// Memory beside sets and result: 4 bytes a member, some 30 a set, and 8 a set and a thread.
Neighbors nearest_sets(const Sets& sets, std::int64_t k, ThreadPool& pool, const Report& report = {});

// The k closest of the first `base` sets for each of the others, 1 <= k <= base, in the same way.
Neighbors nearest_sets_to(const Sets& sets, std::int64_t base, std::int64_t k, ThreadPool& pool,
                          const Report& report = {});

// The distance of every pair: n - 1 values for each set in turn, by the index of the other.
std::vector<float> all_pairs_of_sets(const Sets& sets, ThreadPool& pool, const Report& report = {});

// The closeness that these searches rank by, for sets that outlive it.
PairCloseness pair_closeness_of_sets(const Sets& sets);

}  // namespace agglo
