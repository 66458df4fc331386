// Exemplars of low facility-location cost: the sum of squared distances to the nearest exemplar plus λ per
// exemplar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo::paper {

struct ExemplarPlan {
  double lam;             // positive and finite
  std::int64_t max_iter;  // rounds, each of several sweeps and one comparison with all points
  double tol;             // stop once the cost is within this share of the lower bound
};

struct Exemplars {
  std::vector<std::int32_t> exemplars;  // points, ascending
  std::vector<std::int32_t> labels;     // index of the nearest exemplar of each point
  std::vector<double> history;          // the least cost so far, after each round
  double cost;                          // of these exemplars
  double relaxed;                       // the least value of the relaxation that was found
  double bound;                         // a lower bound on the cost of any exemplars
  bool converged;                       // the cost or the relaxation is within `tol` of the bound
};

// Selects exemplars by a linear relaxation of facility location.
//
// The relaxation has shares w[i, j] >= 0 of every point i in exemplars j, and an exemplar is paid for its
// largest share:
//     minimize sum m[i] D[i, j] w[i, j] + λ sum_j max_i w[i, j]   subject to sum_j w[i, j] = 1 for all i.
// m are the weights of the points, D their squared distances. Its dual has one price per point:
//     maximize sum m[i] alpha[i]   subject to sum_i m[i] max(0, alpha[i] - D[i, j]) <= λ for all j.
// An augmented Lagrangian for the sums to 1 splits the problem into columns j, each with a minimum in closed
// form. Only columns that pay (those whose sum in the dual exceeds λ) are generated, and of them only the
// rows that can have a share. Whether other columns pay is computed from blocks of products, without storing
// D. After each comparison with all columns, the prices, scaled down until they satisfy the dual, give a
// lower bound.
//
// `seeds` are the initial exemplars, and `labels` the index of each point's seed. No two points may be equal.
// The result does not depend on the number of threads.
template <class T>
Exemplars solve_exemplars(const Points<T>& points, std::span<const double> weights,
                          std::span<const std::int32_t> seeds, std::span<const std::int32_t> labels,
                          const ExemplarPlan& plan, Gemm<float>* sgemm, ThreadPool& pool,
                          const Report& report = {});

}  // namespace agglo::paper
