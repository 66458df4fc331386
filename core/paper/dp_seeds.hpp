// Samples seeds for DP-means as k-means++ does. A seed is a point that serves as an initial center.
#pragma once

#include <cstdint>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

// The rule that selects the number of seeds k.
enum class SeedRule {
  cost,   // select the k for which the first k seeds, used as centers, have the smallest DP-means cost
  bound,  // select the first k for which the sum of squared distances is at most 16 λ k (log2 k + 2)
};

struct Seeds {
  std::vector<std::int32_t> seeds;   // ids of the sampled points, in the order of sampling
  std::vector<std::int32_t> labels;  // index of the nearest seed of each point; the first seed in a tie
  // Entry k - 1 is the sum of the squared distances of all points to the nearest of the first k seeds.
  std::vector<double> distances;
};

// Samples seeds one after the other. Stops if the rule says so, or if every point equals a seed.
// The first seed is sampled uniformly from the points.
// For later seeds, the probability of a point is proportional to its squared distance to the nearest seed.
Seeds draw_dp_seeds(const AnyPoints& points, double lam, SeedRule rule, std::uint64_t seed,
                    Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});

}  // namespace agglo::paper
