// Compares pairs of clusters by their linkage. If the linkages are equal, the ids of the clusters decide.
//
// The id of a cluster is its smallest point. The order is total, because no two clusters have the same id.
// So the merges of a round do not depend on the number of threads, on the engine or on the memory layout.
// The order is specified by nearest_neighbors() in src/agglo/rounds/reference.py.
#pragma once

#include <utility>

#include "base/ids.hpp"

namespace agglo {

// A merge of two clusters. Their ids are low < high, and `value` is the linkage between them.
struct Merge {
  Id low, high;
  double value;
};

// Returns whether neighbour `id` with linkage `value` is nearer than neighbour `other` with linkage
// `other_value`. A larger linkage is nearer. If the linkages are equal, the neighbour with the smaller id is
// nearer.
inline bool is_nearer(double value, Id id, double other_value, Id other) {
  return value > other_value || (value == other_value && id < other);
}

// Returns whether pair a merges before pair b. The closer pair merges first.
// If both pairs are equally close, the pair with the smaller ids merges first.
inline bool merges_first(const Merge& a, const Merge& b) {
  return a.value != b.value ? a.value > b.value : std::pair(a.low, a.high) < std::pair(b.low, b.high);
}

}  // namespace agglo
