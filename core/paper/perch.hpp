// Perch: an online tree builder that inserts each point beside its nearest neighbour and rotates to keep the
// tree pure and shallow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo::paper {

enum class PerchSearch { given, boxes, beam };

struct PerchPlan {
  PerchSearch search;  // nearest neighbours: given, or found by bounding boxes, exactly or by beam search
  std::int64_t beam;   // width of the beam
  bool exact_masking;  // test for rotations by distances of points; otherwise by bounding boxes
  bool balance;        // also rotate to make the tree shallower, if clusters stay together
  std::int64_t max_leaves;  // if there are more, the closest two leaves are merged; 0: no limit
};

// Builds a tree from points in order of id. Returns the parents: points first, then inner nodes with children
// before their parents, the root last. With `max_leaves`, a node may have more than two children.
//
// If the search is `given`, nearest[i] is one of 0..i-1; otherwise `nearest` is not read.
std::vector<std::int32_t> build_perch_tree(const Points<float>& points, std::span<const std::int32_t> nearest,
                                           const PerchPlan& plan, const Report& report = {});

}  // namespace agglo::paper
