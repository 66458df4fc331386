// The cost of each node of a tree: the sum of squared distances from the points of the node to its center.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

// means: the center of a cluster is its mean.
// points: the center of a cluster is the point of the cluster that makes the cost smallest.
enum class CenterKind { means, points };

struct NodeCosts {
  std::vector<double> costs;          // the cost of each node; 0 for leaves
  std::vector<std::int32_t> centers;  // the id of the center of each node; empty for CenterKind::means
};

// Computes the costs of all nodes of a valid tree. Row i of `points` is leaf i.
//
// One traversal of the tree reads each point once. It stores at most log2(n) means at a time.
// Costs are not computed as differences of large sums, so they are precise even far from the origin.
// The cost of a node whose points are all equal is exactly 0.
//
// If centers are points, the center of a node is the point nearest to the mean of the node.
// If several points are equally near, the center is the point with the smallest id.
// A center at distance r from the mean increases the cost by n r^2, where n is the number of points.
// To avoid comparisons, each point has a lower bound on its distance to the mean.
// This bound is the distance at the last comparison, minus the distance that the mean has moved since then.
// A point is compared again only if its lower bound does not exclude it as the nearest point.
NodeCosts compute_node_costs(const AnyPoints& points, std::span<const std::int32_t> parent,
                             std::span<const std::int32_t> size, CenterKind centers, ThreadPool& pool,
                             const Report& report = {});

}  // namespace agglo
