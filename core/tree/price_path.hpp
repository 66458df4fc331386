// Tree-consistent partitions of least cost. Every node has a cost as one cluster, and a cluster its price:
// the best partition for one price, for every price at once, and for a given number of clusters.
//
// `parent` is that of a valid tree, `costs` has an entry a node, finite and not negative, 0 at leaves. A
// partition is a set of nodes of which every leaf has exactly one above it or is one itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// The sum of `values` over each node and all below it.
template <class T>
std::vector<T> sums_below(std::span<const std::int32_t> parent, std::span<const T> values);

// Which nodes to join so that the sum of `costs` over the clusters is least, and they are as large as that
// allows: 1 for a node that is no dearer than the best of what is below it. Here costs may be any numbers.
std::vector<std::uint8_t> cheapest(std::span<const std::int32_t> parent, std::span<const double> costs);

// The best partition for every price, as a function of the price that is piecewise linear, concave and
// increasing.
struct Path {
  // By node: the price from which on it is no dearer joined than any way of splitting it; 0 at leaves. The
  // best partition for a price has those nodes joined whose number is no larger, and what is below them.
  std::vector<double> critical;
  // By piece, the first from price 0 on: where it begins, and on it the number of clusters and the sum of
  // their costs. The first increases, the second decreases, and the last is 1.
  std::vector<double> prices, costs;
  std::vector<std::int64_t> clusters;
};
Path price_path(std::span<const std::int32_t> parent, std::span<const double> costs, std::int64_t leaves);

}  // namespace agglo
