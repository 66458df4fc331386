// How good neighbour lists are that somebody else made.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"

namespace agglo {

// How much of the true lists was found: measured on a random sample of points, whose true lists are found by
// comparing them with all points. A neighbour is right if it is as close as the k-th of the true list.
struct Recall {
  double value;
  double error;  // half the width of its 99 % interval
  std::int64_t sample;
};

// From the number of right ones among the k of each point of a sample.
Recall recall_of(std::span<const std::int64_t> right, std::int64_t k);
// From the share of right ones, where lists may be shorter than k.
Recall recall_of(std::span<const double> shares, std::int64_t k);

// m random points of n, one of each of m stretches of equal length.
std::vector<std::int32_t> random_sample(std::int64_t n, std::int64_t m, std::uint64_t seed);

// Lists as `nearest` gives them, of lists that hold points in any order, some twice, -1 for none, or the
// point itself: closest first, with exact values, at most k. Where there are fewer, -1 and the value 0 fill
// up.
template <class T>
Neighbors rescored(const Points<T>& points, std::span<const std::int32_t> lists, std::int64_t width,
                   std::int64_t k, Metric metric, ThreadPool& pool, const Report& report = {});

// The recall of lists of k without a point twice or the point itself, -1 for none, on a sample of points.
template <class T>
Recall recall_on(const Points<T>& points, std::span<const std::int32_t> lists, std::int64_t k, Metric metric,
                 std::span<const std::int32_t> sample, Gemm<float>* sgemm, ThreadPool& pool,
                 const Report& report = {});

}  // namespace agglo
