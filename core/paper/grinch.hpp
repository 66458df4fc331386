// Grinch: an online tree builder. It inserts points one by one.
// Rotations near the new point and grafts (moves of subtrees) then improve the tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

// The similarity of two nodes.
// average: the mean over all pairs of points; centroid: the similarity of the two centroids;
// single: the similarity of the closest pair of points; complete: of the farthest pair.
enum class GrinchLinkage { average, centroid, single, complete };

struct GrinchPlan {
  GrinchLinkage linkage;
  bool dot;   // compare points by inner product; if false, by negative squared distance
  bool scan;  // search the nearest leaf of a node among all leaves; if false, only in `near` of the new point
  bool graft;               // whether to move subtrees (grafts)
  bool single_elimination;  // end the insertion at the first ancestor without a graft
  std::int64_t cap;         // nodes with more points are neither rotated nor grafted; 0 means no limit
};

struct Grinch {
  std::vector<std::int32_t> parent;  // by node: points first, then inner nodes, children before parents
  std::vector<double> value;         // by node: the linkage of its two children; 0 for points
};

// Builds a tree by inserting the points in order of id.
// near[i * k : (i + 1) * k] are the nearest neighbours of point i among the points 0..i-1.
// They are sorted from near to far and padded with -1.
Grinch build_grinch_tree(const Points<float>& points, std::span<const std::int32_t> near, std::int64_t k,
                         const GrinchPlan& plan, const Report& report = {});

}  // namespace agglo::paper
