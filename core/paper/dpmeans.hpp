// DP-means: a search for a flat clustering of low DP-means cost.
// The DP-means cost is the sum of squared distances of points to their cluster means, plus λ per cluster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

struct DpMeansPlan {
  double lam;  // λ: if no center is within squared distance λ, a point opens a cluster
  // The number of points per epoch (see below). If it is 1, the points are assigned one after the other.
  std::int64_t epoch;
  std::int64_t max_iter;  // maximum number of passes over the points
  double tol;             // stop after a pass that lowers the cost by at most this fraction
};

struct DpMeans {
  std::vector<std::int32_t> labels;  // cluster of each point, 0..k-1; no cluster is empty
  std::vector<double> centers;       // the means of the k clusters
  std::vector<double> history;       // DP-means cost after each pass
  bool converged;  // whether the last pass changed no label, or lowered the cost by at most `tol`
};

// Runs DP-means. It repeats passes over the points until a pass changes no label, or `plan` ends the run.
//
// A pass visits the points in the order `order`, which must be a permutation of all points.
// A point is assigned to its nearest center. In a tie, the oldest center is chosen.
// If the squared distance to all centers is larger than λ, the point opens a cluster and becomes its center.
//
// A point is compared with these centers:
//  - The cluster means after the last pass. In the first pass, the rows of `start` (there may be none).
//  - The centers of clusters that earlier epochs of this pass have opened.
//  - The centers of clusters that earlier points of the same epoch have opened, if the point is far from all
//    other centers.
// After the pass, each center is set to the mean of its cluster, and empty clusters are removed.
//
// The result does not depend on the number of threads.
// In the worst case, a pass compares all points with all centers.
// If the center of a point has not moved, the point skips all other centers that have not moved either.
DpMeans solve_dp_means(const AnyPoints& points, std::span<const std::int32_t> order,
                       std::span<const double> start, const DpMeansPlan& plan, Gemm<float>* sgemm,
                       ThreadPool& pool, const Report& report = {});

// Computes the means of k clusters. Every cluster must have at least one point.
std::vector<double> compute_cluster_means(const AnyPoints& points, std::span<const std::int32_t> labels,
                                          std::int64_t k, ThreadPool& pool);

}  // namespace agglo::paper
