// Approximate nearest neighbours of sets by Jaccard distance: MinHash locality-sensitive hashing (LSH).
#pragma once

#include <cstdint>

#include "base/thread_pool.hpp"
#include "neighbors/recall.hpp"
#include "sparse/jaccard.hpp"

namespace agglo {

// Parameters of the MinHash search. If a parameter is 0, the search chooses it.
struct MinHashParams {
  std::int64_t bucket_size = 0;  // maximum number of sets per bucket
  std::int64_t n_bands = 0;      // number of bands; a band is a partition of all sets into buckets
};

struct MinHashResult {
  Neighbors neighbors;
  Recall recall;
  MinHashParams params;  // the parameters used
};

// Return the approximate k nearest neighbours of all sets. The distances of the neighbours are exact.
//
// Two sets are compared if they share a bucket in any band and their sketches are similar.
// If the number of bands is 0, bands are added until a sample of sets reaches the recall of `goal`.
// `goal` also limits the number of bands. If goal.accept_lower is false, the search stops early: as soon as
// this limit seems too low for the recall.
// If there are few sets, all pairs of sets are compared.
// The result depends on the sets, the arguments and the seed, but not on the number of threads.
//
// Besides the sets and the result, the search needs 4 bytes per member and 16 * k + 200 bytes per set.
// Each thread needs 8 more bytes per set.
MinHashResult minhash_neighbors(const Sets& sets, std::int64_t k, const MinHashParams& given,
                                const RecallGoal& goal, std::uint64_t seed, ThreadPool& pool,
                                const Report& report = {});

}  // namespace agglo
