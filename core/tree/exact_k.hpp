// Tree-consistent partitions into exactly k clusters, with the least cost.
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

// Finds all possible numbers of clusters of tree-consistent partitions.
// Returns them as ascending ranges, which do not touch each other.
// Not every number is possible: a root with three leaves gives one cluster or three, but never two.
std::vector<CountRange> find_possible_counts(std::span<const std::int32_t> parent, std::int64_t leaves);

// Selects the partition of least cost into exactly `clusters` clusters.
// Returns 1 for the nodes that are clusters, and 0 for all other nodes.
//
// `clusters` must be a possible number, and `costs` must be as for compute_price_path.
// At the given λ, one best partition must have at least `clusters` clusters.
// Another best partition at this λ, or the same one, must have at most `clusters` clusters.
//
// Method. The excess of a partition is its cost at λ minus the least cost of any partition at λ.
// Among partitions into k clusters, the one with the least excess also has the least cost.
// The excess of a partition is a sum over nodes. Each node is either merged or split in the partition.
// It contributes the cost of this choice minus the cost of the cheaper choice.
// So a search for partitions whose excess is below a bound can skip nearly all nodes.
// The bound is increased until a partition is found.
std::vector<std::uint8_t> select_k_nodes(std::span<const std::int32_t> parent, std::span<const double> costs,
                                         std::int64_t leaves, std::int64_t clusters, double lam,
                                         const Report& report = {});

}  // namespace agglo
