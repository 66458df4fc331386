// Exemplars among the points, of low facility cost: squared distances to the nearest exemplar, plus lambda an
// exemplar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo {

struct ExemplarPlan {
  double lambda;          // positive and finite
  std::int64_t max_iter;  // rounds, each of some sweeps and one look at all points
  double tol;             // the share of the cost that may lie between it and the bound at the end
};

struct Exemplars {
  std::vector<std::int32_t> exemplars;  // points, ascending
  std::vector<std::int32_t> labels;     // each point's nearest exemplar, by its place among them
  std::vector<double> history;          // after each round, the least cost so far of any exemplars
  double cost;                          // of these exemplars
  double relaxed;                       // the least value found of the relaxation
  double bound;                         // no exemplars cost less
  bool converged;                       // whether cost or relaxation is within `tol` of the bound
};

// The relaxation gives shares w[i, j] >= 0 of every point i to exemplars j, and an exemplar counts by its
// largest share:
//     least sum m[i] D[i, j] w[i, j] + lambda sum_j max_i w[i, j],  where sum_j w[i, j] = 1 for all i.
// m are the points' weights, D their squared distances. Its dual asks for prices,
//     most sum m[i] alpha[i],  where sum_i m[i] max(0, alpha[i] - D[i, j]) <= lambda for all j.
// An augmented Lagrangian for the sums to 1 makes the problem one of blocks, a column j each, whose minimum
// has a closed form. Only columns that can pay (those whose sum in the dual exceeds lambda) are ever made,
// and of them only rows that can have a share. Whether others can pay is seen from blocks of products; the
// table D is nowhere. Whenever all columns are looked at, prices lowered until they satisfy the dual are a
// bound.
//
// `seeds` are exemplars to begin with, `labels` each point's place among them. No two points are equal. The
// result does not depend on the number of threads.
template <class T>
Exemplars exemplars(const Points<T>& points, std::span<const double> weights,
                    std::span<const std::int32_t> seeds, std::span<const std::int32_t> labels,
                    const ExemplarPlan& plan, Gemm<float>* sgemm, ThreadPool& pool,
                    const Report& report = {});

}  // namespace agglo
