// The recall of neighbour lists, and exact values for the lists of other libraries.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"

namespace agglo {

// The recall: the share of true neighbours that a search found.
// The recall is measured on a random sample of points, which are compared with all points.
// A neighbour counts as true if it is at least as close as the true k-th neighbour.
struct Recall {
  double value;
  double error;  // half the width of the 99 % confidence interval
  std::int64_t sample;
};

// Estimate the recall from the number of true neighbours (at most k) that each sample point found.
Recall estimate_recall(std::span<const std::int64_t> right, std::int64_t k);
// Estimate the recall from the share of true neighbours that each sample point found.
Recall estimate_recall(std::span<const double> shares, std::int64_t k);

// Return m of n points in increasing order: one random point from each of m equal ranges.
std::vector<std::int32_t> random_sample(std::int64_t n, std::int64_t m, std::uint64_t seed);

// Return the k nearest neighbours in each list with exact values, nearest first.
//
// Input lists have `width` entries in any order.
// Repeated entries, -1 (no neighbour) and the point itself are dropped.
// If fewer than k neighbours remain, index -1 and value 0 fill the list.
template <class T>
Neighbors rescore_lists(const Points<T>& points, std::span<const std::int32_t> lists, std::int64_t width,
                        std::int64_t k, Metric metric, ThreadPool& pool, const Report& report = {});

// Measure the recall of neighbour lists of length k on a sample of points.
// A list must contain neither repeated entries nor the point itself. An entry of -1 means no neighbour.
template <class T>
Recall measure_recall(const Points<T>& points, std::span<const std::int32_t> lists, std::int64_t k,
                      Metric metric, std::span<const std::int32_t> sample, Gemm<float>* sgemm,
                      ThreadPool& pool, const Report& report = {});

}  // namespace agglo
