// Seeds for clusters of low DP-means cost, drawn as k-means++ draws them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo {

enum class SeedRule {
  cost,   // the prefix of the sequence of seeds whose cost is least, squared distances being to the seeds
  bound,  // stop when the sum of squared distances is at most 16 lambda k (log2 k + 2)
};

struct Seeds {
  std::vector<std::int32_t> seeds;  // points, in the order drawn
  std::vector<std::int32_t>
      labels;                     // each point's nearest seed, by its place in that order; ties to the first
  std::vector<double> distances;  // after 1, 2, ... seeds, the sum of squared distances to the nearest
};

// Points drawn one after the other, the first by even chance and each further one by chance in proportion to
// its squared distance from the nearest before it, until the rule says enough or every point is a seed's
// copy.
template <class T>
Seeds dp_seeds(const Points<T>& points, double lambda, SeedRule rule, std::uint64_t seed, Gemm<float>* sgemm,
               ThreadPool& pool, const Report& report = {});

}  // namespace agglo
