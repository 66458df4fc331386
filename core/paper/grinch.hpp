// Grinch: an online tree builder that rearranges by rotations near the new point and by grafts of subtrees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

// The similarity of two nodes: the mean over all pairs of points, that of their centroids, or that of the
// closest or the farthest pair.
enum class GrinchLinkage { average, centroid, single, complete };

struct GrinchPlan {
  GrinchLinkage linkage;
  bool dot;    // compare points by inner product; otherwise by negative squared distance
  bool scan;   // search a node's nearest leaf among all leaves; otherwise in the new point's list
  bool graft;  // whether to graft
  bool single_elimination;  // end the insertion at the first ancestor without a graft
  std::int64_t cap;         // larger nodes are neither rotated nor grafted; 0: no limit
};

struct Grinch {
  std::vector<std::int32_t> parent;  // points, then inner nodes, children before parents
  std::vector<double> value;         // the linkage of a node's two children; 0 for points
};

// Builds a tree from points in order of id. near[i * k : (i + 1) * k] are points before i, the nearest first,
// padded by -1.
Grinch build_grinch_tree(const Points<float>& points, std::span<const std::int32_t> near, std::int64_t k,
                         const GrinchPlan& plan, const Report& report = {});

}  // namespace agglo::paper
