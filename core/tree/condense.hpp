// The nodes of a tree that a condensed tree keeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// The columns have one entry per node of a valid tree with the column `parent`.
struct CondenseCosts {
  std::span<const double> level;          // not decreasing towards the root
  std::span<const double> weight;         // of the merge that created the node; not negative, 0 for leaves
  std::span<const double> price;          // of keeping the node; positive
  std::span<const std::uint8_t> allowed;  // whether the node may be kept; 0 for leaves
};

// Selects the nodes to keep, so that the total cost is least. Returns 1 for kept nodes, 0 for others.
//
// The root is always kept, at no price. A kept node costs its price. A node that is not kept costs its weight
// times the difference between the level of its lowest kept ancestor and its own level.
// The time is O(n log n).
std::vector<std::uint8_t> select_kept_nodes(std::span<const std::int32_t> parent, const CondenseCosts& costs);

}  // namespace agglo
