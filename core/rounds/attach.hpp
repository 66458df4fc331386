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

// The columns of a tree (see TreeView) that attach_points reads.
struct AttachTree {
  std::span<const std::int32_t> parent, size, round;
  std::int64_t leaves;  // number of leaves
};

// The parameters for attaching points by a linkage of edge weights.
struct EdgeAttachment : LinkageSpec {  // attach_points sets shift, limbs and count_shift
  // One threshold per round of the tree: a point is attached in a round if its linkage to a cluster reaches
  // the threshold. A larger linkage means closer. Thresholds never increase from round to round. A round
  // compares the point with the clusters that exist before the merges of this round. So the last threshold is
  // compared with the clusters that exist after all earlier rounds.
  std::span<const float> thresholds;
  // The weights of the leaves, for average linkage. If `weights` is empty, every leaf has weight 1.
  // A new point always has weight 1.
  std::span<const double> weights;
};

// The result of attach_points. Each vector has one entry per new point.
struct Attachments {
  std::vector<std::int32_t> node;   // the cluster that the point is attached to, or -1 if there is none
  std::vector<std::int32_t> round;  // the round of the attachment, counted from 1, or -1 if not attached
  std::vector<double> value;        // the linkage of the point and `node`, or NaN if not attached
};

// Attaches each new point to a cluster of the tree, by replaying the rounds with this point added.
//
// In each round, the point is compared with the clusters that contain its neighbours.
// If the linkage to the closest cluster reaches the threshold of the round, the point joins that cluster.
// If several clusters are equally close, the point joins the cluster with the smallest leaf.
// Row i of `edges` lists the leaves that are the nearest neighbours of new point i. Entries of -1 are
// ignored. Merges of the tree in round thresholds.size() or later are ignored.
Attachments attach_points(const AttachTree& tree, const DirectedView& edges, const EdgeAttachment& rule,
                          ThreadPool& pool, const Report& report = {});

// The weight, squared norm, spread and mean of each node of a tree. Vector linkages are computed from them.
struct NodeMoments {
  std::vector<double> weight, squared_norm, spread;  // indexed by node
  std::vector<float> mean;                           // one row per inner node
};

// Computes the moments of all nodes of a tree. Leaf i is row i of `vectors`.
// The moments are bit-identical to those that run_rounds computes. This function overwrites `vectors.means`.
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
  std::span<const float> thresholds;                     // one per round, see EdgeAttachment
};

// Attaches each new point to a cluster of the tree by a vector linkage.
// The linkage of a new point and a leaf is computed from the weight of the edge between the two.
Attachments attach_points(const AttachTree& tree, const DirectedView& edges, const MeanAttachment& rule,
                          ThreadPool& pool, const Report& report = {});

}  // namespace agglo
