// The cost of each node of a tree as a cluster: the sum of squared distances of its points to its center.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

// The center of a cluster is its mean, or the point of the cluster with the least cost as center.
enum class CenterKind { means, points };

struct NodeCosts {
  std::vector<double> costs;          // by node; 0 for leaves
  std::vector<std::int32_t> centers;  // by node: the id of its center; empty for CenterKind::means
};

// Computes the costs of all nodes of a valid tree. Row i of `points` is leaf i.
//
// One walk through the tree reads each point once and stores at most log2(n) means at a time.
// Costs are not differences of large sums, so points far from the origin lose no precision.
// The cost of a node whose points are all equal is exactly 0.
//
// If centers are points, the center of a node is the point nearest to its mean, or the smallest id in a tie.
// A center at distance r from the mean increases the cost by n r^2, where n is the number of points.
// A point is compared again only if it can be the nearest to the new mean.
// A lower bound decides this: its distance at the last comparison, minus the moves of the mean since then.
template <class T>
NodeCosts compute_node_costs(const Points<T>& points, std::span<const std::int32_t> parent,
                             std::span<const std::int32_t> size, CenterKind centers, ThreadPool& pool,
                             const Report& report = {});

}  // namespace agglo
