// The rounds of SCC, Affinity and HAC. The rounds merge the points of a neighbour graph into a forest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neighbors/graph.hpp"
#include "rounds/constraints.hpp"
#include "rounds/linkage.hpp"
#include "rounds/moments.hpp"

namespace agglo {

// The parameters of one run: the linkage, the thresholds, and the rule that selects the next threshold.
//
// In a round, a cluster merges with its nearest neighbour if the linkage between the two reaches the
// threshold of the round. Before the comparison, linkage and threshold are rounded to float32, the precision
// of edge weights.
struct RoundPlan : LinkageSpec {
  std::span<const double> thresholds;  // from the closest to the farthest; if empty, rounds have no threshold
  bool until_stable = false;           // whether to repeat each threshold until a round merges nothing
  bool mutual = false;                 // whether to merge only mutual nearest neighbours
};

// The record of one round. Only rounds in which clusters merged are recorded.
struct Round {
  double threshold;
  std::int64_t before, after;  // number of clusters before and after the round
  double seconds;
};

// The initial clusters of a run that does not start from single points.
//
// Each node of the graph is an initial cluster. The initial clusters are sorted by their smallest points.
// Two initial clusters have at most one edge, which combines all edges between their points.
// For single linkage, the weight of this edge is the weight of the closest of the combined edges.
// For complete linkage, it is the weight of the farthest of the combined edges.
struct InitialClusters {
  std::span<const double> sizes;         // number of points of each cluster; the total must be below 2^53
  std::span<const std::int64_t> counts;  // for each entry of the graph: number of combined edges
  // For average linkage, the sum of the combined edge weights for each entry of the graph.
  // The sums are multiples of 2^-shift (see LinkageSpec). For distances, the sums are negated.
  // Each sum is stored as `limbs` integers of 64 bits, lowest limb first.
  std::span<const std::int64_t> sums;
};

// The nodes of a forest. Leaves come first. Merged clusters are sorted by round, then by smallest leaf.
struct Forest {
  std::vector<std::int32_t> parent;  // parent of each node, or -1 for a root
  // The linkage at which the children of each node merged. If several pairs of children merged, it is the
  // farthest of the linkages of these pairs. The values of leaves are not used.
  // Must-link pairs merge at +infinity for similarities and at -infinity for distances.
  std::vector<double> value;
  std::vector<std::int32_t> size;   // number of leaves below the node
  std::vector<std::int32_t> round;  // the round of the merge, counted from 1, or 0 for leaves
  std::vector<Round> rounds;        // the rounds in which clusters merged
};

// Clusters the points of a neighbour graph. The result does not depend on the number of threads.
//
// Constraints must not contradict each other.
// Must-link pairs merge in an extra first round without a threshold.
// For average linkage, a point of weight w counts as w points. The weights must have exact sums in float64.
// During the run, report(number of merges, number of points) is called from time to time.
Forest run_rounds(const GraphView& graph, const RoundPlan& plan, const Constraints& constraints,
                  ThreadPool& pool, const Report& report = {});
inline Forest run_rounds(const GraphView& graph, const RoundPlan& plan, ThreadPool& pool,
                         const Report& report = {}) {
  return run_rounds(graph, plan, Constraints{}, pool, report);
}

// Clusters the points of a neighbour graph by a vector linkage.
// `plan.kind` says whether the vector linkage is a similarity or a distance.
Forest run_rounds(const GraphView& graph, const Vectors& vectors, const RoundPlan& plan,
                  const Constraints& constraints, ThreadPool& pool, const Report& report = {});

// Continues an earlier run from its clusters. `plan` contains the remaining thresholds.
Forest run_rounds(const GraphView& graph, const InitialClusters& clusters, const RoundPlan& plan,
                  ThreadPool& pool, const Report& report = {});

}  // namespace agglo
