// Duplicates: groups of equal rows. Searches process only one row of each group.
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
  // Return all points that are equal to the given point, which is included.
  std::span<const std::int32_t> group(std::int32_t point) const { return groups.row(inverse[point]); }
};

// Find the duplicates among dense rows.
Duplicates find_duplicates(const AnyPoints& points, ThreadPool& pool);

// Find the duplicates among n items, given (hash, index) for each item.
// is_equal(i, j) compares two items with equal hashes.
using Hashes = std::vector<std::pair<std::uint64_t, std::int32_t>>;
Duplicates find_duplicates(Hashes hashes, const std::function<bool(std::int32_t, std::int32_t)>& is_equal);

// Return for each row the first row that is equal to it. This is the row itself if no earlier row is equal.
//
// Row i holds numbers[indptr[i]] .. numbers[indptr[i + 1] - 1].
// Numbers are passed by their bits, as unsigned integers of the same size.
// If `floating` is true, 0 and -0 are equal.
template <class Word>
std::vector<std::int32_t> first_duplicates(std::span<const std::int64_t> indptr,
                                           std::span<const Word> numbers, bool floating, ThreadPool& pool);

}  // namespace agglo
