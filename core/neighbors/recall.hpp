// Recall of neighbour lists, and exact values for lists of other libraries.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"

namespace agglo {

// The share of true neighbours that were found. It is measured on a random sample of points, which are
// compared with all points. A neighbour counts as true if it is as close as the k-th true one.
struct Recall {
  double value;
  double error;  // half the width of the 99 % confidence interval
  std::int64_t sample;
};

// Estimate the recall from the number of true neighbours among the k of each point of a sample.
Recall estimate_recall(std::span<const std::int64_t> right, std::int64_t k);
// Estimate the recall from the share of true neighbours of each point, if lists may be shorter than k.
Recall estimate_recall(std::span<const double> shares, std::int64_t k);

// Return m random points of n in increasing order, one of each of m ranges of equal length.
std::vector<std::int32_t> random_sample(std::int64_t n, std::int64_t m, std::uint64_t seed);

// Return the first k neighbours of each list with exact values, the nearest first.
//
// Lists of `width` entries may be in any order, and may hold a point twice, -1 for no neighbour, or the point
// itself. If fewer than k are left, -1 and the value 0 fill the row.
template <class T>
Neighbors rescore_lists(const Points<T>& points, std::span<const std::int32_t> lists, std::int64_t width,
                        std::int64_t k, Metric metric, ThreadPool& pool, const Report& report = {});

// Measure the recall of lists of k neighbours on a sample of points. A list must not hold a point twice, or
// the point itself; -1 means no neighbour.
template <class T>
Recall measure_recall(const Points<T>& points, std::span<const std::int32_t> lists, std::int64_t k,
                      Metric metric, std::span<const std::int32_t> sample, Gemm<float>* sgemm,
                      ThreadPool& pool, const Report& report = {});

}  // namespace agglo
