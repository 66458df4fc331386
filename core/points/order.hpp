// Which of the points need be searched, and in what order, so that close points are close in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "points/space.hpp"

namespace agglo {

// Points that are equal bit by bit, group by group. The first of a group, its smallest index, stands for all.
struct Copies {
  std::vector<std::int32_t> first;    // of each group, in increasing order
  std::vector<std::int32_t> group;    // of each point
  std::vector<std::int64_t> indptr;   // group g is members[indptr[g]] .. members[indptr[g + 1] - 1]
  std::vector<std::int32_t> members;  // increasing within a group

  std::span<const std::int32_t> of(std::int32_t point) const {
    const std::int64_t begin = indptr[group[point]], end = indptr[group[point] + 1];
    return std::span(members).subspan(begin, end - begin);
  }
};
template <class T>
Copies copies(const Points<T>& points, ThreadPool& pool);

// A hash of bytes, which goes on from `state`.
std::uint64_t hash(const void* bytes, std::size_t size, std::uint64_t state = 0);
// Groups of n things by a hash of each and a test whether two of one hash are the same.
using Hashes = std::vector<std::pair<std::uint64_t, std::int32_t>>;
Copies copies(Hashes hashes, const std::function<bool(std::int32_t, std::int32_t)>& same);

// An order of n places with `width` coordinates each, such that runs of `leaf` places, and of `block` ones,
// are close together: the places are halved again and again, by the coordinate that spreads most. Block must
// be a multiple of leaf.
std::vector<std::int32_t> close_order(std::span<const float> coordinates, std::int64_t width,
                                      std::int64_t block, std::int64_t leaf);

}  // namespace agglo
