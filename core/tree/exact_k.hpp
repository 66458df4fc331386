// The cheapest tree-consistent partition into exactly k clusters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"

namespace agglo {

// The integers from `first` to `last`, both included.
struct CountRange {
  std::int64_t first, last;
};

// Finds all numbers of clusters that tree-consistent partitions can have.
// Returns these numbers as ranges in ascending order. The ranges do not touch each other.
// Not every number is possible. For example, a root with three leaves allows 1 or 3 clusters, but not 2.
std::vector<CountRange> find_possible_counts(std::span<const std::int32_t> parent, std::int64_t leaves);

// Selects the cheapest tree-consistent partition into exactly `clusters` clusters.
// Returns 1 for the nodes that are clusters, and 0 for all other nodes.
//
// `clusters` must be in a range that find_possible_counts returns. `costs` is as in compute_price_path.
// At λ = `lam`, there must be a cheapest partition with at least `clusters` clusters, and a cheapest
// partition with at most `clusters` clusters.
//
// The excess of a partition is its cost at λ minus the minimal cost of any partition at λ.
// Among partitions into k clusters, the partition with the smallest excess also has the smallest cost.
// In a partition, each node is either merged or split. The excess of the partition is a sum over nodes.
// Each node adds the cost of its choice (merge or split) minus the cost of the cheaper choice.
// So a search for partitions whose excess is below a bound can skip nearly all nodes.
// The search increases this bound until it finds a partition.
std::vector<std::uint8_t> select_k_nodes(std::span<const std::int32_t> parent, std::span<const double> costs,
                                         std::int64_t leaves, std::int64_t clusters, double lam,
                                         const Report& report = {});

}  // namespace agglo
