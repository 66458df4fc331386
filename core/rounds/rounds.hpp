// The rounds of SCC, Affinity and HAC: from a neighbour graph to a forest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "neighbors/graph.hpp"
#include "rounds/constraints.hpp"
#include "rounds/moments.hpp"

namespace agglo {

enum class Linkage { average, single, complete };

// The parameters of one run: linkage, thresholds and advance rule.
//
// In a round, a cluster merges with its nearest neighbour if their linkage reaches the round's threshold.
// Both are rounded to float32, the precision of the weights.
struct RoundPlan {
  Kind kind = Kind::similarity;
  Linkage linkage = Linkage::average;
  std::optional<double> missing;  // the value of a pair without an edge; none: such pairs take no part
  int shift = 0;                  // averages: weights are rounded to multiples of 2^-shift, see FixedPoint
  std::size_t limbs = 1;          // averages: 64-bit limbs per sum of weights: 1, 2 or 6
  int count_shift = 0;  // averages of weighted points: pairs are counted in multiples of 2^-count_shift
  std::span<const double> thresholds;  // from near to far; empty: no threshold at all
  bool until_stable = false;           // repeat a threshold until a round merges nothing
  bool mutual = false;                 // merge only mutual nearest neighbours
};

// The record of a round that merged clusters.
struct Round {
  double threshold;
  std::int64_t before, after;  // numbers of clusters
  double seconds;
};

// Clusters to start from instead of points.
//
// The points of the graph are these clusters, ordered by their smallest points. The weight of an edge is that
// of the closest or the farthest edge between two clusters. `counts` and `sums` have one entry per index of
// the graph.
struct InitialClusters {
  std::span<const double> sizes;         // numbers of points; their sum must stay below 2^53
  std::span<const std::int64_t> counts;  // numbers of point pairs with an edge
  // Averages: sums of weights in multiples of 2^-shift, negative for distances, as limbs, the lowest first.
  std::span<const std::int64_t> sums;
};

// The nodes of a forest: leaves first, then merged clusters, ordered by round and by smallest leaf.
struct Forest {
  std::vector<std::int32_t> parent;  // -1 for a root
  // The farthest linkage among the merges of the node; infinitely close for must-link pairs; unused for
  // leaves.
  std::vector<double> value;
  std::vector<std::int32_t> size;   // number of leaves, which are points or initial clusters
  std::vector<std::int32_t> round;  // 1-based; 0 for leaves
  std::vector<Round> rounds;        // only those that merged
};

// Clusters the points of `graph`. The forest depends on the arguments only, not on the number of threads.
//
// Constraints must not contradict each other. Must-link pairs are merged by a first round without a
// threshold. In an average, a point of weight w counts as w points; sums of weights must be exact in float64.
// Between rounds, report(merges so far, points) is called.
Forest run_rounds(const GraphView& graph, const RoundPlan& plan, const Constraints& constraints,
                  ThreadPool& pool, const Report& report = {});
inline Forest run_rounds(const GraphView& graph, const RoundPlan& plan, ThreadPool& pool,
                         const Report& report = {}) {
  return run_rounds(graph, plan, Constraints{}, pool, report);
}

// Clusters by a linkage of vectors. `plan.kind` is the kind of that linkage.
Forest run_rounds(const GraphView& graph, const Vectors& vectors, const RoundPlan& plan,
                  const Constraints& constraints, ThreadPool& pool, const Report& report = {});

// Continues a run from its clusters, with the thresholds that remain.
Forest run_rounds(const GraphView& graph, const InitialClusters& clusters, const RoundPlan& plan,
                  ThreadPool& pool, const Report& report = {});

}  // namespace agglo
