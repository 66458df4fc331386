// Seeds for clusterings of low DP-means cost, sampled as by k-means++.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo::paper {

// When to stop adding seeds.
enum class SeedRule {
  cost,   // keep the prefix of the seeds with the least cost, with the seeds as centers
  bound,  // stop once the sum of squared distances is at most 16 λ k (log2 k + 2)
};

struct Seeds {
  std::vector<std::int32_t> seeds;   // points, in the order of sampling
  std::vector<std::int32_t> labels;  // index of the nearest seed of each point; ties go to the first seed
  std::vector<double> distances;     // sum of squared distances to the nearest seed, after 1, 2, ... seeds
};

// Samples seeds one after the other until the rule is met or every point equals a seed. The first is uniform;
// the probability of each further one is proportional to its squared distance to the nearest seed.
template <class T>
Seeds draw_dp_seeds(const Points<T>& points, double lam, SeedRule rule, std::uint64_t seed,
                    Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});

}  // namespace agglo::paper
