// Perch: an online tree builder. It inserts each point beside its nearest neighbour.
// Rotations then keep clusters together and the tree shallow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

// The search for nearest neighbours: given by the caller, exact by bounding boxes, or beam search.
enum class PerchSearch { given, boxes, beam };

struct PerchPlan {
  PerchSearch search;
  std::int64_t beam;        // width of the beam search
  bool exact_masking;       // decide on rotations by distances of points; if false, by bounding boxes
  bool balance;             // also rotate to make the tree shallower, if clusters stay together
  std::int64_t max_leaves;  // above this number, the two closest sibling leaves merge; 0 means no limit
};

// Builds a tree by inserting the points in order of id. Returns the parent of each node.
// Nodes are the points, then the inner nodes. Children come before their parents.
// If max_leaves is positive, a node may have more than two children.
//
// For PerchSearch::given, nearest[i] is the nearest neighbour of point i among 0..i-1.
// Otherwise `nearest` is ignored.
std::vector<std::int32_t> build_perch_tree(const Points<float>& points, std::span<const std::int32_t> nearest,
                                           const PerchPlan& plan, const Report& report = {});

}  // namespace agglo::paper
