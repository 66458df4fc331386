// Duplicates: groups of equal rows. A search reads only one row of each group.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/csr.hpp"
#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

// Groups of points that are equal bit by bit. The point with the smallest index represents its group.
// `first` and `inverse` have the same meaning as in numpy.unique.
struct Duplicates {
  std::vector<std::int32_t> first;    // the first point of each group, in increasing order
  std::vector<std::int32_t> inverse;  // the group of each point
  Csr groups;                         // the points of each group, in increasing order

  bool has_none() const { return first.size() == inverse.size(); }
  // Return all points that are equal to the given point. The result includes the given point.
  std::span<const std::int32_t> group(std::int32_t point) const { return groups.row(inverse[point]); }
};

// Find the duplicates among dense rows.
Duplicates find_duplicates(const AnyPoints& points, ThreadPool& pool);

// Find the duplicates among n items. `hashes` holds a pair (hash, index) for each item.
// is_equal(i, j) returns whether the items i and j are equal. It is called only for items with equal hashes.
using Hashes = std::vector<std::pair<std::uint64_t, std::int32_t>>;
Duplicates find_duplicates(Hashes hashes, const std::function<bool(std::int32_t, std::int32_t)>& is_equal);

// Return for each row the index of the first row that is equal to it.
// If no earlier row is equal to row i, the result for row i is i.
//
// Row i holds numbers[indptr[i]] .. numbers[indptr[i + 1] - 1].
// Each number is passed as an unsigned integer with the same bits.
// If `floating` is true, the numbers are floating-point numbers, and 0 equals -0.
template <class Word>
std::vector<std::int32_t> first_duplicates(std::span<const std::int64_t> indptr,
                                           std::span<const Word> numbers, bool floating, ThreadPool& pool);

}  // namespace agglo
