// What every node of a tree costs as one cluster: the squared distances of its points to their center.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

enum class Centers { means, points };  // where a cluster's center is: its mean, or the best of its points

struct Costs {
  std::vector<double> costs;          // by node, 0 at leaves
  std::vector<std::int32_t> centers;  // by node, the best point, the first of equals; none with means
};

// The costs of all nodes, row i of `points` being leaf i. `parent` and `size` are those of a valid tree.
//
// Each point is read once, in one walk through the tree that keeps no more than log2(n) means at a time. No
// square of a sum is ever subtracted from a sum of squares, so that points far from the origin do no harm,
// and copies of one point cost exactly 0. The best point of a node is that nearest its mean: a point at
// distance r of it makes n r^2 more than the mean does. It is found among the points that can be nearest
// still, by how far each was from the mean when last looked at and how far means have moved since.
template <class T>
Costs node_costs(const Points<T>& points, std::span<const std::int32_t> parent,
                 std::span<const std::int32_t> size, Centers centers, ThreadPool& pool,
                 const Report& report = {});

}  // namespace agglo
