// Selects the nodes of a tree that its condensed tree keeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// The costs of keeping and of dropping nodes. Each span has one entry per node of a valid tree.
struct CondenseCosts {
  std::span<const double> level;   // level of the node; a parent is never below its children
  std::span<const double> weight;  // weight of the merge that created the node (0 for leaves, never negative)
  std::span<const double> price;   // cost of keeping the node; positive
  std::span<const std::uint8_t> allowed;  // 1 if the node may be kept, and 0 otherwise (always 0 for leaves)
};

// Selects the nodes to keep such that the total cost is minimal. Returns 1 for nodes to keep and 0 for all
// other nodes.
//
// The root is always kept and costs nothing. Any other kept node costs its price.
// If a node is not kept, it costs its weight times a difference of levels.
// This difference is the level of the lowest kept ancestor minus the level of the node. The time is O(n log
// n) for n nodes.
std::vector<std::uint8_t> select_kept_nodes(std::span<const std::int32_t> parent, const CondenseCosts& costs);

}  // namespace agglo
