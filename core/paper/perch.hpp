// Perch: a tree that points join one after the other, each next to its nearest neighbour, with rotations that
// keep clusters together and the tree shallow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

enum class PerchSearch { given, boxes, beam };

struct PerchPlan {
  PerchSearch search;       // nearest neighbours are given, or found by bounding boxes, exactly or in a beam
  std::int64_t beam;        // nodes of a level that a beam goes on with
  bool exact_masking;       // rotations by distances of points; otherwise by what boxes say of them
  bool balance;             // also rotate to make the tree shallower, where that separates nobody
  std::int64_t max_leaves;  // beyond, the closest two leaves become one; 0: never
};

// The parents of the nodes, points first, then the inner ones with children before their parents, the root
// last. With `max_leaves` a node may have more than two children.
//
// Points come in order of their ids. `nearest[i]` is one of 0..i-1, where the search is given; otherwise it
// is not read.
std::vector<std::int32_t> perch(const Points<float>& points, std::span<const std::int32_t> nearest,
                                const PerchPlan& plan, const Report& report = {});

}  // namespace agglo
