// Attachment of new points to the clusters of a tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/graph.hpp"
#include "rounds/moments.hpp"
#include "rounds/rounds.hpp"

namespace agglo {

// The columns of TreeView that are needed to attach points.
struct AttachTree {
  std::span<const std::int32_t> parent, size, round;
  std::int64_t leaves;  // number of leaves
};

// The parameters for attaching points by a linkage of edge weights.
struct EdgeAttachment : LinkageSpec {  // shift, limbs and count_shift are set for each point
  // By round of the tree: the linkage that a point must reach to be attached in this round.
  // A larger value means closer, and thresholds never increase.
  // The last threshold applies after the last round.
  std::span<const float> thresholds;
  // Average linkage: weights of the leaves; if empty, all are 1. A new point has weight 1.
  std::span<const double> weights;
};

// The result of attach_points: one entry per new point in each column.
struct Attachments {
  std::vector<std::int32_t> node;   // the cluster that the point is attached to, or -1
  std::vector<std::int32_t> round;  // the round in which the point is attached, counted from 1, or -1
  std::vector<double> value;        // the linkage of the point and this cluster, or NaN
};

// Attaches each new point to a cluster, by replaying the rounds of the tree with this point added.
//
// In each round, the point is compared with the clusters that contain its neighbours.
// If the linkage to the closest cluster reaches the threshold of the round, the point is attached to it.
// If several clusters are equally close, the one with the smallest leaf is chosen.
// `edges` has one row per new point with its nearest leaves; entries of -1 are ignored.
// Merges of round thresholds.size() or later are ignored.
Attachments attach_points(const AttachTree& tree, const DirectedView& edges, const EdgeAttachment& rule,
                          ThreadPool& pool, const Report& report = {});

// The moments of all nodes of a tree, for vector linkages.
struct NodeMoments {
  std::vector<double> weight, squared_norm, spread;  // indexed by node
  std::vector<float> mean;                           // one row per inner node
};

// Computes the moments of all nodes of a tree. The leaves are the points of `vectors`.
// The results are bit-identical to those of the rounds. Overwrites `vectors.means`.
NodeMoments compute_node_moments(std::span<const std::int32_t> parent, std::int64_t leaves,
                                 const Vectors& vectors);

// The parameters for attaching points by a vector linkage.
struct MeanAttachment {
  VectorLinkage linkage = VectorLinkage::average;
  Metric metric = Metric::cosine;
  std::int64_t d = 0;                                    // number of columns of `points` and `mean`
  std::span<const float> points;                         // one row per new point
  std::span<const double> weight, squared_norm, spread;  // indexed by node
  std::span<const float> mean;                           // one row per inner node
  std::span<const float> thresholds;                     // as in EdgeAttachment
};

// Attaches each new point to a cluster by a vector linkage.
// The linkage of a new point and a leaf is computed from the weight of the edge between them.
Attachments attach_points(const AttachTree& tree, const DirectedView& edges, const MeanAttachment& rule,
                          ThreadPool& pool, const Report& report = {});

}  // namespace agglo
