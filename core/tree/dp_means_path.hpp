// Tree-consistent partitions of least cost: for one λ, and for all λ at once (the price path).
//
// A partition is a set of nodes such that every leaf is below, or is, exactly one of them. Each node has a
// cost as a cluster, and every cluster costs λ in addition. `parent` is the column of a valid tree. `costs`
// has one entry per node, finite and not negative, 0 for leaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// Sums `values` over each node and all its descendants.
template <class T>
std::vector<T> sum_descendants(std::span<const std::int32_t> parent, std::span<const T> values);

// Selects the nodes that are merged in the partition of least cost: 1 for a node that costs no more than the
// best partition of its descendants. So of equal partitions the one with the larger clusters is chosen. Here
// costs may be any numbers.
std::vector<std::uint8_t> select_cheapest_nodes(std::span<const std::int32_t> parent,
                                                std::span<const double> costs);

// The best partitions for all λ. Their cost is a piecewise linear, concave and increasing function of λ.
struct PricePath {
  // By node: the smallest λ for which it costs no more than any split of it; 0 for leaves. In the best
  // partition for λ, the nodes with critical[node] <= λ are merged, and so are their descendants.
  std::vector<double> critical;
  // By piece, from λ = 0 on: its first λ, the sum of node costs and the number of clusters. The λs increase,
  // the numbers decrease, and the last number is 1.
  std::vector<double> lams, costs;
  std::vector<std::int64_t> clusters;
};
PricePath compute_price_path(std::span<const std::int32_t> parent, std::span<const double> costs,
                             std::int64_t leaves);

}  // namespace agglo
