// Seeds for DP-means, sampled as in k-means++.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo::paper {

// The rule that decides how many seeds are used.
enum class SeedRule {
  cost,   // use the first k seeds, for the k with the least DP-means cost if seeds are centers
  bound,  // stop at the first k for which the sum of squared distances is at most 16 λ k (log2 k + 2)
};

struct Seeds {
  std::vector<std::int32_t> seeds;   // ids of the sampled points, in the order of sampling
  std::vector<std::int32_t> labels;  // by point: index of its nearest seed, the first in a tie
  std::vector<double> distances;     // sum of squared distances to the nearest of the first 1, 2, ... seeds
};

// Samples seeds one after the other, until the rule stops or every point equals a seed.
// The first seed is sampled uniformly from the points.
// For later seeds, the probability of a point is proportional to its squared distance to the nearest seed.
template <class T>
Seeds draw_dp_seeds(const Points<T>& points, double lam, SeedRule rule, std::uint64_t seed,
                    Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});

}  // namespace agglo::paper
