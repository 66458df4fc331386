// Where points that were not there would have joined a tree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/graph.hpp"
#include "rounds/moments.hpp"
#include "rounds/rounds.hpp"

namespace agglo {

// How new points join the clusters of a tree.
struct Joining {
  Kind kind = Kind::similarity;
  Linkage linkage = Linkage::average;
  std::optional<double> missing;  // the value of a pair without an edge; none: such pairs take no part
  // What the linkage must reach in each round of the tree, larger being closer and never increasing; the last
  // entry is for what comes after the last round.
  std::span<const float> limits;
  std::span<const double> weights;  // averages: what leaves count as, new points being 1; empty: 1 each
};

// An entry a new point.
struct Attached {
  std::vector<std::int32_t> node;   // the cluster that it joins; -1: none
  std::vector<std::int32_t> round;  // in which round, counted from 1; -1: in none
  std::vector<double> value;        // at what linkage; NaN: none
};

// Replays the rounds of a tree for new points, each alone: before a round it is compared with the clusters
// that its neighbours are in, and joins the closest if that reaches the limit of the round; of equally close
// ones, that of the smallest leaf. `edges` has a row a new point, of the leaves that are its neighbours; -1
// is none. Nodes of round limits.size() or later are no merges.
Attached attached(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                  std::span<const std::int32_t> round, std::int64_t leaves, const DirectedView& edges,
                  const Joining& joining, ThreadPool& pool, const Report& report = {});

// What linkages of the points themselves keep of the nodes of a tree.
struct NodeMoments {
  std::vector<double> weight, square, spread;  // of all nodes
  std::vector<float> mean;                     // of inner nodes, a row each
};

// Those of a tree over the points of `vectors`, whose means are overwritten: as the rounds made them.
NodeMoments node_moments(std::span<const std::int32_t> parent, std::int64_t leaves, const Vectors& vectors);

// New points and the nodes of a tree, and how to compare them.
struct ByMeans {
  VectorLinkage linkage = VectorLinkage::average;
  Metric metric = Metric::cosine;
  std::int64_t d = 0;
  std::span<const float> points;                   // the new ones, a row each
  std::span<const double> weight, square, spread;  // of all nodes
  std::span<const float> mean;                     // of inner nodes
  std::span<const float> limits;                   // as of Joining
};

// The same by a linkage of the points themselves. A new point is as close to a leaf as its edge says.
Attached attached(std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
                  std::span<const std::int32_t> round, std::int64_t leaves, const DirectedView& edges,
                  const ByMeans& means, ThreadPool& pool, const Report& report = {});

}  // namespace agglo
