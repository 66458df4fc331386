// Tree-consistent partitions of least cost into exactly k clusters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"

namespace agglo {

// The numbers first, first + 1, ..., last.
struct CountRange {
  std::int64_t first, last;
};

// Finds the numbers of clusters that tree-consistent partitions can have, as ascending ranges with gaps
// between them. A node of three children, for example, gives one cluster or three, but never two.
std::vector<CountRange> find_possible_counts(std::span<const std::int32_t> parent, std::int64_t leaves);

// Selects exactly `clusters` nodes that form the partition of least cost: 1 for these nodes, 0 for all
// others.
//
// The number must be possible, and costs must be as for compute_price_path. `lam` is a λ at which one
// best partition has at least that many clusters, and one at most that many.
//
// Method. The excess of a partition is its cost at `lam` minus the least cost. Among partitions into k
// clusters, the least excess is the least cost. Excess adds up over the tree: a node adds what it costs more
// merged, or more split, than the better of the two. So a search up to an excess bound can skip nearly all
// nodes. The bound grows until a partition is found.
std::vector<std::uint8_t> select_k_nodes(std::span<const std::int32_t> parent, std::span<const double> costs,
                                         std::int64_t leaves, std::int64_t clusters, double lam,
                                         const Report& report = {});

}  // namespace agglo
