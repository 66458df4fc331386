// Attaching new points to the clusters of a tree.
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

// The columns of a tree that attaching needs; see TreeView.
struct AttachTree {
  std::span<const std::int32_t> parent, size, round;
  std::int64_t leaves;
};

// How to attach points by a linkage of edge weights.
struct EdgeAttachment {
  Kind kind = Kind::similarity;
  Linkage linkage = Linkage::average;
  std::optional<double> missing;  // the value of a pair without an edge; none: such pairs take no part
  // By round of the tree, the linkage that a point must reach to be attached. Larger is closer, and
  // thresholds never increase. The last entry is for points that no round attaches.
  std::span<const float> thresholds;
  std::span<const double>
      weights;  // averages: weights of the leaves; a new point has weight 1; empty: 1 each
};

// One entry per new point.
struct Attachments {
  std::vector<std::int32_t> node;   // the cluster that it is attached to; -1: none
  std::vector<std::int32_t> round;  // the round in which it is attached, counted from 1; -1: none
  std::vector<double> value;        // the linkage to that cluster; NaN: none
};

// Attaches each new point by replaying the rounds of a tree for it alone.
//
// Before a round, the point is compared with the clusters that contain its neighbours. It is attached to the
// closest if that reaches the threshold of the round; ties go to the cluster of the smallest leaf. `edges`
// has one row per new point, with its neighbours among the leaves; -1 is none. Nodes of round
// thresholds.size() or later do not count as merges.
Attachments attach_points(const AttachTree& tree, const DirectedView& edges, const EdgeAttachment& rule,
                          ThreadPool& pool, const Report& report = {});

// The moments of all nodes of a tree, for linkages of vectors.
struct NodeMoments {
  std::vector<double> weight, squared_norm, spread;  // by node
  std::vector<float> mean;                           // one row per inner node
};

// Computes the moments of a tree over the points of `vectors`, as the rounds compute them. Overwrites the
// means.
NodeMoments compute_node_moments(std::span<const std::int32_t> parent, std::int64_t leaves,
                                 const Vectors& vectors);

// How to attach points by a linkage of vectors.
struct MeanAttachment {
  VectorLinkage linkage = VectorLinkage::average;
  Metric metric = Metric::cosine;
  std::int64_t d = 0;
  std::span<const float> points;                         // one row per new point
  std::span<const double> weight, squared_norm, spread;  // by node
  std::span<const float> mean;                           // one row per inner node
  std::span<const float> thresholds;                     // as for EdgeAttachment
};

// Attaches new points by a linkage of vectors. The linkage of a point and a leaf follows from the weight of
// their edge.
Attachments attach_points(const AttachTree& tree, const DirectedView& edges, const MeanAttachment& rule,
                          ThreadPool& pool, const Report& report = {});

}  // namespace agglo
