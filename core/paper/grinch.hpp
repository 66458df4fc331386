// Grinch: an online algorithm that builds a binary tree. It inserts points one by one.
// After each insertion, rotations near the new point and grafts improve the tree. A graft moves a subtree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

// The similarity of two nodes.
//  average: the mean similarity over all pairs of points.
//  centroid: the similarity of the two centroids.
//  single: the similarity of the closest pair of points.
//  complete: the similarity of the farthest pair of points.
enum class GrinchLinkage { average, centroid, single, complete };

struct GrinchPlan {
  GrinchLinkage linkage;
  bool dot;                 // whether to compare points by inner product instead of negative squared distance
  bool scan;                // whether to search the nearest leaf among all leaves, instead of only in `near`
  bool graft;               // whether to graft subtrees
  bool single_elimination;  // whether an insertion ends at the first ancestor without a graft
  std::int64_t cap;         // nodes with more points are neither rotated nor grafted; 0 means no limit
};

struct Grinch {
  std::vector<std::int32_t> parent;  // parents of the points, then of the inner nodes; children come first
  std::vector<double> value;         // linkage of the two children of each node; 0 for points
};

// Builds a tree by inserting the points in order of id.
// near[i * k : (i + 1) * k] are the nearest neighbours of point i among the points 0..i-1.
// The neighbours are sorted from near to far. Unused entries are -1.
Grinch build_grinch_tree(const Points<float>& points, std::span<const std::int32_t> near, std::int64_t k,
                         const GrinchPlan& plan, const Report& report = {});

}  // namespace agglo::paper
