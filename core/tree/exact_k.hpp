// Tree-consistent partitions of exactly so many clusters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"

namespace agglo {

struct Run {
  std::int64_t first, last;
};

// The numbers of clusters that tree-consistent partitions have, ascending, in runs that do not touch. A node
// of three children, say, makes one cluster or three of them, and never two.
std::vector<Run> possible_numbers(std::span<const std::int32_t> parent, std::int64_t leaves);

// Which nodes to join so that they are exactly `clusters` and the sum of their costs is least: 1 for those, 0
// for all others. The number must be possible, costs be as price_path takes them, and `price` one at which
// the best partitions have at least and at most that many clusters.
//
// How it works. Let excess be what a partition costs at `price`, beyond the best. Among partitions of one
// size the least excess is the least cost, and excess adds up over the tree: what a node costs more joined,
// or more split, than the better of the two. So a search for the least excess up to a bound can leave out all
// nodes that a bound on the way to them excludes, which are nearly all. The bound grows until a partition is
// found.
std::vector<std::uint8_t> cheapest_of(std::span<const std::int32_t> parent, std::span<const double> costs,
                                      std::int64_t leaves, std::int64_t clusters, double price,
                                      const Report& report = {});

}  // namespace agglo
