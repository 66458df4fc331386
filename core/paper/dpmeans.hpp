// Flat clusterings of low DP-means cost: squared distances to the cluster's mean, plus lambda a cluster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo {

struct DpMeansPlan {
  double lambda;          // a point farther than that, squared, from all centres opens a cluster
  std::int64_t epoch;     // points that do not see what the others of their epoch have opened; 1: serial
  std::int64_t max_iter;  // passes over the points
  double tol;             // a pass that lowers the cost by no more than this share of it is the last
};

struct DpMeans {
  std::vector<std::int32_t> labels;  // 0..k-1, none empty
  std::vector<double> centers;       // the k means
  std::vector<double> history;       // cost after each pass
  bool converged;                    // the last pass changed no label, or less than `tol`
};

// Passes over the points until none changes a label. A pass takes the points in the given order, a
// permutation. A point goes to the nearest of the centres it sees, ties to the oldest, unless all are farther
// than lambda: then it opens a cluster and is its centre. It sees the means of the clusters after the last
// pass (in the first pass the `start`, any number of rows), and of what the pass has opened, that of earlier
// epochs. If with these it were to open a cluster, it looks at what its own epoch has opened before it, too.
// After the pass centres become means, and clusters without points go.
//
// The result is a function of points, order, start and plan. A pass costs a product of all points with all
// centres in the worst case; of two clusters that nobody joined or left, nobody is compared twice.
template <class T>
DpMeans dp_means(const Points<T>& points, std::span<const std::int32_t> order, std::span<const double> start,
                 const DpMeansPlan& plan, Gemm<float>* sgemm, ThreadPool& pool, const Report& report = {});

// The mean of each of k clusters, none of which is empty.
template <class T>
std::vector<double> cluster_means(const Points<T>& points, std::span<const std::int32_t> labels,
                                  std::int64_t k, ThreadPool& pool);

}  // namespace agglo
