// The rounds: from a neighbour graph to a tree.
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

// What a run is to do. A cluster joins its nearest neighbour in a round if their linkage reaches the round's
// threshold, both rounded to float32, the precision of the weights.
struct Plan {
  Kind kind = Kind::similarity;
  Linkage linkage = Linkage::average;
  std::optional<double> missing;  // the value of a pair without an edge; none: such pairs take no part
  int shift = 0;          // averages: weights are rounded to multiples of 2^-shift and summed as integers
  std::size_t limbs = 1;  // of 64 bits, that these integers have: 1, 2 or 6
  int count_shift = 0;    // averages of points with weights: pairs are counted in multiples of 2^-count_shift
  std::span<const double> thresholds;  // from near to far; empty: no threshold at all
  bool until_stable = false;           // stay at a threshold until a round merges nothing
  bool mutual = false;                 // join only clusters that are each other's nearest neighbour
};

struct Round {
  double threshold;
  std::int64_t before, after;  // clusters
  double seconds;
};

// Clusters to start from instead of points. The graph then has them for points, named in the order of their
// own smallest points, and its weights are those of the closest or the farthest edge between two of them;
// `counts` and `sums` have an entry for each of its indices.
struct Clusters {
  std::span<const double> sizes;         // how many points each is of; sums of them are to stay below 2^53
  std::span<const std::int64_t> counts;  // pairs of points with an edge
  // Averages: sums of weights in steps of 2^-shift, negative for distances; the limbs of each, the lowest
  // first.
  std::span<const std::int64_t> sums;
};

// Nodes of a forest, leaves first, then the merged clusters in order of round and of smallest leaf.
struct Forest {
  std::vector<std::int32_t> parent;  // -1 for a root
  // The farthest linkage that was joined to make the node, infinitely close where points must be linked;
  // unused for leaves.
  std::vector<double> value;
  std::vector<std::int32_t> size;   // leaves below, be they points or clusters
  std::vector<std::int32_t> round;  // 1-based; 0 for leaves
  std::vector<Round> rounds;        // only those that merged
};

// Clusters the points of `graph` as `plan` says and `constraints` allow, which must not contradict each
// other. The forest is a function of these alone. A point of weight w counts as w points in an average; sums
// of weights are to be exact in float64. What must be linked is merged by a round before all others, which
// has no threshold. `report` hears (clusters merged away so far, points) between rounds.
Forest run_rounds(const GraphView& graph, const Plan& plan, const Constraints& constraints, ThreadPool& pool,
                  const Report& report = {});
inline Forest run_rounds(const GraphView& graph, const Plan& plan, ThreadPool& pool,
                         const Report& report = {}) {
  return run_rounds(graph, plan, Constraints{}, pool, report);
}

// The same by a linkage of the points themselves, whose kind is the plan's.
Forest run_rounds(const GraphView& graph, const Vectors& vectors, const Plan& plan,
                  const Constraints& constraints, ThreadPool& pool, const Report& report = {});

// The same from clusters on: with a run's own clusters and what is left of its thresholds, the rest of it.
Forest run_rounds(const GraphView& graph, const Clusters& clusters, const Plan& plan, ThreadPool& pool,
                  const Report& report = {});

}  // namespace agglo
