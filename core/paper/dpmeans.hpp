// DP-means: flat clusterings of low cost.
// The cost is the sum of squared distances of points to their cluster means, plus λ per cluster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo::paper {

struct DpMeansPlan {
  double lam;             // λ: a point opens a cluster if its squared distance to all centers is larger
  std::int64_t epoch;     // number of points that are assigned in parallel (see below); 1 means serial
  std::int64_t max_iter;  // maximum number of passes over the points
  double tol;             // stop after a pass that lowers the cost by at most this fraction
};

struct DpMeans {
  std::vector<std::int32_t> labels;  // by point: its cluster, 0..k-1; no cluster is empty
  std::vector<double> centers;       // the k means
  std::vector<double> history;       // cost after each pass
  bool converged;                    // the last pass changed no label, or lowered the cost by at most `tol`
};

// Runs DP-means: passes over the points until a pass changes no label.
//
// A pass visits the points in the given order, which is a permutation.
// A point is assigned to its nearest center. In a tie, the oldest center is chosen.
// If the squared distance to all centers is larger than λ, the point opens a cluster and is its center.
//
// A point is compared with these centers:
//  - the cluster means after the last pass; in the first pass, the rows of `start`, which may be empty;
//  - the centers of clusters that earlier epochs of this pass have opened;
//  - if it would open a cluster: the centers of clusters that earlier points of its epoch have opened.
// After the pass, each center is set to the mean of its cluster, and empty clusters are removed.
//
// The result does not depend on the number of threads.
// In the worst case, a pass compares all points with all centers.
// A point is not compared again with a center that has not moved, if the point's own center has not moved.
template <class T>
DpMeans solve_dp_means(const Points<T>& points, std::span<const std::int32_t> order,
                       std::span<const double> start, const DpMeansPlan& plan, Gemm<float>* sgemm,
                       ThreadPool& pool, const Report& report = {});

// Computes the means of k clusters. No cluster may be empty.
template <class T>
std::vector<double> compute_cluster_means(const Points<T>& points, std::span<const std::int32_t> labels,
                                          std::int64_t k, ThreadPool& pool);

}  // namespace agglo::paper
