// The cost of every node of a tree as one cluster: the sum of squared distances of its points to its center.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

enum class CenterKind { means, points };  // the center of a cluster is its mean, or the best of its points

struct NodeCosts {
  std::vector<double> costs;  // by node, 0 for leaves
  std::vector<std::int32_t>
      centers;  // by node, the best point, ties to the first; empty if centers are means
};

// Computes the costs of all nodes of a valid tree. Row i of `points` is leaf i.
//
// Each point is read once, in one walk through the tree that keeps at most log2(n) means at a time. Costs are
// not differences of large sums, so points far from the origin lose no precision, and duplicates cost exactly
// 0. The best point of a node is the one nearest to its mean: a point at distance r adds n r^2 to the cost of
// the mean. Only points that can still be the nearest are compared. Their bounds are the distance at the last
// comparison, and how far the mean has moved since.
template <class T>
NodeCosts compute_node_costs(const Points<T>& points, std::span<const std::int32_t> parent,
                             std::span<const std::int32_t> size, CenterKind centers, ThreadPool& pool,
                             const Report& report = {});

}  // namespace agglo
