// Grinch: a tree that points join one after the other, rearranged by rotations near the new point and by
// grafts of whole subtrees from elsewhere, under any linkage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

// How similar two nodes are: the mean over all pairs of points, the similarity of their centroids, or that of
// the closest or the farthest pair.
enum class GrinchLinkage { average, centroid, single, complete };

struct GrinchPlan {
  GrinchLinkage linkage;
  bool dot;                 // similarity of two points: their product; otherwise minus their squared distance
  bool scan;                // a node's nearest leaf is sought among all; otherwise among the new point's list
  bool graft;               // whether there are grafts at all
  bool single_elimination;  // the first ancestor of a new point that finds no graft ends its insertion
  std::int64_t cap;         // nodes of more points are neither rotated past nor grafted; 0: no such limit
};

struct Grinch {
  std::vector<std::int32_t> parent;  // points first, then inner nodes, children before parents, the root last
  std::vector<double> value;         // the linkage of a node's two children; 0 for points
};

// Points come in order of their ids. near[i * k : (i + 1) * k] are points before i, the nearest first, then
// -1s.
Grinch grinch(const Points<float>& points, std::span<const std::int32_t> near, std::int64_t k,
              const GrinchPlan& plan, const Report& report = {});

}  // namespace agglo
