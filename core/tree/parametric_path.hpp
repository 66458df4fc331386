// The best partitions of a tree for all λ at once. Each node has a cost, and a price that λ multiplies.
//
// A partition is a set of nodes that contains exactly one ancestor of each leaf.
// In this definition, a leaf is its own ancestor.
// The total of a partition is the sum of the costs of its nodes, plus λ times the sum of their prices.
// The best partition for λ is the partition with the smallest total.
// The partition into single leaves has the smallest sum of costs. Merging nodes never increases the sum of
// prices. So the best partitions are nested. They become coarser as λ grows.
//
// The DP-means path and the modularity path are special cases.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

struct ParametricPath {
  // The critical λ of each node.
  // From the critical λ on, no partition of the node's descendants has a smaller total than the node.
  // The critical λ is 0 for leaves and for given nodes.
  // If merging the node does not lower the sum of prices, the critical λ is infinity.
  // In the best partition for λ, the nodes with critical[node] <= λ are merged.
  // All descendants of a merged node are merged as well.
  std::vector<double> critical;
  // The smallest total is a piecewise linear function of λ. Each vector has one entry per linear piece.
  // `lams` has the smallest λ of the piece. `clusters` has the number of clusters.
  // `costs` has the sum of costs of the partition minus the sum of costs of the leaves.
  // `prices` has the sum of prices of the leaves minus the sum of prices of the partition.
  // The first λ is 0. From piece to piece, λ increases. The number of clusters decreases to 1.
  std::vector<double> lams, costs, prices;
  std::vector<std::int64_t> clusters;
};

// Computes the path of a valid tree with the column `parent`.
// `costs` has one entry per inner node: the cost of the node minus the sum of the costs of its children.
// `prices` has one entry per inner node: the sum of the prices of its children minus its own price.
// All entries of `costs` and `prices` are finite. No entry of `prices` is negative.
// given[node] is 1 if the node and all its descendants are always merged. `given` may be empty.
ParametricPath compute_parametric_path(std::span<const std::int32_t> parent, std::int64_t leaves,
                                       std::span<const double> costs, std::span<const double> prices,
                                       std::span<const std::uint8_t> given = {});

}  // namespace agglo
