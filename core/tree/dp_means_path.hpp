// Tree-consistent partitions of least cost: for one λ, and for all λ at once (the DP-means path).
//
// A tree-consistent partition is a set of nodes that contains exactly one ancestor of each leaf.
// A leaf counts as its own ancestor here.
// The cost of a partition is the sum of the costs of its nodes, plus λ per node.
//
// `parent` is the column of a valid tree.
// `costs` has one entry per node. Costs are finite and not negative, and 0 for leaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// For each node, returns the sum of `values` over the node and all its descendants.
template <class T>
std::vector<T> sum_descendants(std::span<const std::int32_t> parent, std::span<const T> values);

// Returns 1 for each node that costs no more than the best partition of its descendants, and 0 otherwise.
//
// The partition of least cost consists of the highest nodes with value 1.
// If several partitions have the least cost, this is the one with the largest clusters.
// For this function, costs may be any numbers.
std::vector<std::uint8_t> select_cheapest_nodes(std::span<const std::int32_t> parent,
                                                std::span<const double> costs);

// The DP-means path: the best partitions for all λ.
// Their cost is a piecewise linear, concave and increasing function of λ.
struct PricePath {
  // By node: the smallest λ at which the node costs no more than any partition of its descendants.
  // It is 0 for leaves. In the best partition for λ, the nodes with critical[node] <= λ are merged.
  // All descendants of a merged node count as merged.
  std::vector<double> critical;
  // By linear piece: its smallest λ, the sum of node costs, and the number of clusters.
  // The first λ is 0 and the λs increase. The numbers of clusters decrease to 1.
  std::vector<double> lams, costs;
  std::vector<std::int64_t> clusters;
};
PricePath compute_price_path(std::span<const std::int32_t> parent, std::span<const double> costs,
                             std::int64_t leaves);

}  // namespace agglo
