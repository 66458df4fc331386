// Nearly all nearest neighbours of sets by Jaccard distance, at a fraction of the cost of an exact search.
#pragma once

#include <cstdint>

#include "base/thread_pool.hpp"
#include "neighbors/recall.hpp"
#include "sparse/jaccard.hpp"

namespace agglo {

struct Banding {
  std::int64_t bucket = 0;  // sets in a bucket, at most; 0: chosen
  std::int64_t bands = 0;   // divisions of all sets into buckets; 0: chosen
  bool patient = true;      // whether to go on although it seems hopeless
};

struct NearlyNearestSets {
  Neighbors neighbors;
  Recall recall;
  Banding effort;  // what was spent
};

// Like `nearest_sets`, but each list holds the k closest of those that were compared: of all that share a
// bucket with a set in some band, those that seemed close. Values are exact. It is a function of the sets and
// the seed alone. Unless `wish` says how many, bands are added until random samples of sets say that `recall`
// is reached, or there are `most`, or without patience it is clear that these will not do. Few sets are all
// compared.
//
// Memory beside sets and result: 4 bytes a member, 16 * k + 200 bytes a set, and 8 a set and a thread.
NearlyNearestSets nearly_nearest_sets(const Sets& sets, std::int64_t k, double recall, const Banding& wish,
                                      std::int64_t most, std::int64_t sample, std::uint64_t seed,
                                      ThreadPool& pool, const Report& report = {});

}  // namespace agglo
