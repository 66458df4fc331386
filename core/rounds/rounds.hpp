// The rounds of SCC, Affinity and HAC: they turn a neighbour graph into a forest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neighbors/graph.hpp"
#include "rounds/constraints.hpp"
#include "rounds/linkage.hpp"
#include "rounds/moments.hpp"

namespace agglo {

// The parameters of one run: linkage, thresholds and advance rule.
//
// In a round, a cluster merges with its nearest neighbour if their linkage reaches the round's threshold.
// Before the comparison, both are rounded to float32, the precision of the edge weights.
struct RoundPlan : LinkageSpec {
  std::span<const double> thresholds;  // from near to far; if empty, all linkages may merge
  bool until_stable = false;           // repeat each threshold until a round merges nothing
  bool mutual = false;                 // merge only mutual nearest neighbours
};

// The record of one round, in which at least two clusters merged.
struct Round {
  double threshold;
  std::int64_t before, after;  // number of clusters before and after the round
  double seconds;
};

// Initial clusters, from which a run starts instead of from points.
//
// The nodes of the graph are these clusters, sorted by their smallest points.
// For single linkage, the weight of an edge is that of the closest pair of points with an edge.
// For complete linkage, it is that of the farthest such pair.
// `counts` and `sums` have one entry per graph entry.
struct InitialClusters {
  std::span<const double> sizes;         // number of points of each cluster; their sum must be below 2^53
  std::span<const std::int64_t> counts;  // number of point pairs with an edge
  // Average linkage: sums of edge weights in units of 2^-shift, negated for distances.
  // Each sum has `limbs` entries, lowest limb first.
  std::span<const std::int64_t> sums;
};

// The nodes of a forest: leaves first, then merged clusters, sorted by round and then by smallest leaf.
struct Forest {
  std::vector<std::int32_t> parent;  // -1 for a root
  // The farthest linkage at which the children of the node merged. Unused for leaves.
  // Must-link pairs merge at +infinity for similarities and -infinity for distances.
  std::vector<double> value;
  std::vector<std::int32_t> size;   // number of leaves below the node
  std::vector<std::int32_t> round;  // the round in which the node was merged, counted from 1; 0 for leaves
  std::vector<Round> rounds;        // only rounds in which clusters merged
};

// Clusters the points of `graph`. The result does not depend on the number of threads.
//
// Constraints must not contradict each other. Must-link pairs merge in a first round without a threshold.
// In average linkage, a point of weight w counts as w points. Sums of weights must be exact in float64.
// report(number of merges, number of points) is called between rounds.
Forest run_rounds(const GraphView& graph, const RoundPlan& plan, const Constraints& constraints,
                  ThreadPool& pool, const Report& report = {});
inline Forest run_rounds(const GraphView& graph, const RoundPlan& plan, ThreadPool& pool,
                         const Report& report = {}) {
  return run_rounds(graph, plan, Constraints{}, pool, report);
}

// Clusters the points of `graph` by a vector linkage.
// `plan.kind` says whether the values of this linkage are similarities or distances.
Forest run_rounds(const GraphView& graph, const Vectors& vectors, const RoundPlan& plan,
                  const Constraints& constraints, ThreadPool& pool, const Report& report = {});

// Continues a run from the clusters of an earlier run. `plan` has the remaining thresholds.
Forest run_rounds(const GraphView& graph, const InitialClusters& clusters, const RoundPlan& plan,
                  ThreadPool& pool, const Report& report = {});

}  // namespace agglo
