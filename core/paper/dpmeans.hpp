// DP-means: flat clusterings of low cost, which is the sum of squared distances to the cluster means plus λ
// per cluster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo::paper {

struct DpMeansPlan {
  double lam;             // a point opens a cluster if its squared distance to all centers is larger
  std::int64_t epoch;     // points that are assigned in parallel (see below); 1: serial
  std::int64_t max_iter;  // passes over the points
  double tol;             // stop after a pass that lowers the cost by at most this share
};

struct DpMeans {
  std::vector<std::int32_t> labels;  // 0..k-1, none empty
  std::vector<double> centers;       // the k means
  std::vector<double> history;       // cost after each pass
  bool converged;                    // the last pass changed no label, or lowered the cost by at most `tol`
};

// Runs passes over the points until none changes a label.
//
// A pass takes the points in the given order, a permutation. A point is assigned to the nearest of the
// centers that it is compared with; ties go to the oldest. If all of them are farther than λ, the point opens
// a cluster, whose center it is. It is compared with the cluster means after the last pass (in the first pass
// with `start`, any number of rows), and with the clusters that earlier epochs of this pass have opened. Only
// if it were to open a cluster, it is also compared with those that its own epoch has opened before it. After
// the pass, centers become means, and empty clusters are removed.
//
// The result depends on points, order, start and plan only. In the worst case, a pass compares all points
// with all centers. Pairs whose point and center have not changed since the last pass are not compared again.
template <class T>
DpMeans solve_dp_means(const Points<T>& points, std::span<const std::int32_t> order,
                       std::span<const double> start, const DpMeansPlan& plan, Gemm<float>* sgemm,
                       ThreadPool& pool, const Report& report = {});

// Computes the means of k clusters, none of which is empty.
template <class T>
std::vector<double> compute_cluster_means(const Points<T>& points, std::span<const std::int32_t> labels,
                                          std::int64_t k, ThreadPool& pool);

}  // namespace agglo::paper
