// Approximate nearest neighbours of sets by Jaccard distance: MinHash locality-sensitive hashing (LSH).
#pragma once

#include <cstdint>

#include "base/thread_pool.hpp"
#include "neighbors/recall.hpp"
#include "sparse/jaccard.hpp"

namespace agglo {

// Parameters of the MinHash search. If a number is 0, the search chooses it.
struct MinHashParams {
  std::int64_t bucket_size = 0;  // maximum number of sets per bucket
  std::int64_t n_bands = 0;      // number of bands, which are partitions of all sets into buckets
};

struct MinHashResult {
  Neighbors neighbors;
  Recall recall;
  MinHashParams params;  // the parameters used
};

// Return approximate nearest neighbours with exact values: nearly the result of `jaccard_neighbors`.
//
// Sets that share a bucket in any band are compared if their sketches are close.
// Unless the number of bands is given, bands are added until a sample of sets reaches the recall of the goal.
// If the goal does not accept a lower recall, the search stops as soon as the allowed bands seem too few.
// If there are few sets, all pairs are compared.
// The result depends on the sets, the arguments and the seed, but not on the number of threads.
//
// Memory besides sets and result: 4 bytes per member, 16 * k + 200 bytes per set, and 8 per set and thread.
MinHashResult minhash_neighbors(const Sets& sets, std::int64_t k, const MinHashParams& given,
                                const RecallGoal& goal, std::uint64_t seed, ThreadPool& pool,
                                const Report& report = {});

}  // namespace agglo
