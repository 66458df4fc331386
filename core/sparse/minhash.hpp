// Approximate nearest neighbours of sets by Jaccard distance: locality-sensitive hashing with MinHash.
#pragma once

#include <cstdint>

#include "base/thread_pool.hpp"
#include "neighbors/recall.hpp"
#include "sparse/jaccard.hpp"

namespace agglo {

// Parameters of the search; 0 means that the search chooses.
struct MinHashParams {
  std::int64_t bucket = 0;    // sets in a bucket, at most
  std::int64_t bands = 0;     // partitions of all sets into buckets
  bool never_give_up = true;  // whether to go on even if the recall seems out of reach
};

struct MinHashResult {
  Neighbors neighbors;
  Recall recall;
  MinHashParams params;  // those that were used
};

// Return nearly all of what `jaccard_neighbors` returns, with exact values.
//
// Sets that share a bucket of some band are compared if their sketches look close. Unless the number of bands
// is given, bands are added until a sample of sets reaches `recall`, or there are `max_bands`. If not
// `never_give_up`, the search also stops if max_bands will clearly not suffice. If there are few sets, all
// pairs are compared. The result depends on the sets, the arguments and the seed.
//
// Memory besides sets and result: 4 bytes per member, 16 * k + 200 bytes per set, and 8 per set and thread.
MinHashResult minhash_neighbors(const Sets& sets, std::int64_t k, double recall, const MinHashParams& given,
                                std::int64_t max_bands, std::int64_t sample, std::uint64_t seed,
                                ThreadPool& pool, const Report& report = {});

}  // namespace agglo
