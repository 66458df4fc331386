// Selects exemplars of low facility-location cost. Exemplars are points that represent clusters.
// The cost is the sum of squared distances of points to their nearest exemplars, plus λ per exemplar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

struct ExemplarPlan {
  double lam;             // λ, positive and finite
  std::int64_t max_iter;  // maximum number of rounds; each round ends with a comparison of all points
  double tol;             // stop if the relative gap between cost and lower bound is at most `tol`
};

struct Exemplars {
  std::vector<std::int32_t> exemplars;  // ids of the exemplars, ascending
  std::vector<std::int32_t> labels;     // index of the nearest exemplar of each point
  std::vector<double> history;          // after each round, the smallest cost found so far
  double cost;                          // facility-location cost of the exemplars
  double relaxed;                       // the smallest value of the relaxation that was found
  double bound;                         // lower bound on the cost of any set of exemplars
  bool converged;                       // whether the cost or `relaxed` is within `tol` of `bound`
};

// Selects exemplars by a linear relaxation of facility location.
//
// In the relaxation, point i is assigned to exemplar j with a fraction w[i, j] >= 0, called its share:
//     minimize sum m[i] D[i, j] w[i, j] + λ sum_j max_i w[i, j]   subject to sum_j w[i, j] = 1 for all i.
// m[i] is the weight of point i. D[i, j] is the squared distance of points i and j.
// The dual problem has one variable alpha[i] per point, called its price:
//     maximize sum m[i] alpha[i]   subject to sum_i m[i] max(0, alpha[i] - D[i, j]) <= λ for all j.
// The sum in constraint j is called the payment of column j.
//
// The method is an augmented Lagrangian for the constraints sum_j w[i, j] = 1.
// It splits the problem into columns j. The minimum of each column has a closed form.
// A column is generated only if its payment exceeds λ. It stores only rows that can have a share.
// The payments of all columns are computed from blocks of D, so D is never stored as a whole.
// If the prices violate constraints of the dual, they are scaled down. Then they give a lower bound.
//
// `seeds` are the initial exemplars, and labels[i] is the index of the seed of point i.
// No two points may be equal. The result does not depend on the number of threads.
Exemplars solve_exemplars(const AnyPoints& points, std::span<const double> weights,
                          std::span<const std::int32_t> seeds, std::span<const std::int32_t> labels,
                          const ExemplarPlan& plan, Gemm<float>* sgemm, ThreadPool& pool,
                          const Report& report = {});

}  // namespace agglo::paper
