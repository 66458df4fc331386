// Perch: an online algorithm that builds a tree. It inserts each point beside its nearest neighbour.
// After each insertion, rotations keep clusters together and the tree shallow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

// How nearest neighbours are found.
//  given: the caller passes the nearest neighbours.
//  boxes: an exact search with bounding boxes.
//  beam: an approximate beam search.
enum class PerchSearch { given, boxes, beam };

struct PerchPlan {
  PerchSearch search;
  std::int64_t beam;   // number of nodes that the beam search keeps per level
  bool exact_masking;  // whether rotations use distances of points instead of bounding boxes
  bool balance;        // whether to rotate also for a shallower tree, if clusters stay together
  // If there are more leaves, the two closest sibling leaves merge; 0 means no limit.
  std::int64_t max_leaves;
};

// Builds a tree by inserting the points in order of id. Returns the parent of each node.
// The points are the first nodes. The inner nodes follow. Children come before their parents.
// If max_leaves is positive, a node may have more than two children.
//
// For PerchSearch::given, nearest[i] is the nearest neighbour of point i among the points 0..i-1.
// For other searches, `nearest` is ignored.
std::vector<std::int32_t> build_perch_tree(const Points<float>& points, std::span<const std::int32_t> nearest,
                                           const PerchPlan& plan, const Report& report = {});

}  // namespace agglo::paper
