// From the lists of distinct points to those of all points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "neighbors/exact.hpp"
#include "neighbors/lists.hpp"
#include "points/order.hpp"
#include "points/space.hpp"

namespace agglo {

// The k closest points are among the copies of the k closest distinct ones, and of the point itself.
template <class T>
class Expansion {
 public:
  Expansion(const Space<T>& space, const Copies& groups, std::int64_t k)
      : space_(space), groups_(groups), k_(k) {}

  // All that can be among the k closest of a point or its copies, in order; some may be the point itself.
  std::span<const Candidate> of(std::int32_t point, std::span<const Candidate> closest) {
    if (groups_.first.size() == groups_.group.size()) return closest;  // there are no copies
    list_.clear();
    for (const Candidate& candidate : closest) add(candidate.closeness, groups_.of(candidate.index));
    if (groups_.of(point).size() > 1) add(space_.closeness(point, point), groups_.of(point));
    std::sort(list_.begin(), list_.end());
    return list_;
  }

  // The same of a point that is none of these.
  std::span<const Candidate> of_guest(std::span<const Candidate> closest) {
    if (groups_.first.size() == groups_.group.size()) return closest;
    list_.clear();
    for (const Candidate& candidate : closest) add(candidate.closeness, groups_.of(candidate.index));
    std::sort(list_.begin(), list_.end());
    return list_;
  }

  // The k closest of a guest, to a row of the result.
  void write_guest(std::int64_t row, std::span<const Candidate> closest, Neighbors& result) {
    const auto list = of_guest(closest);
    for (std::int64_t s = 0; s < k_; ++s) {
      result.indices[row * k_ + s] = list[s].index;
      result.values[row * k_ + s] = space_.value(list[s].closeness);
    }
  }

  // The k closest of a point and of its copies, to their rows of the result.
  void write(std::int32_t point, std::span<const Candidate> closest, Neighbors& result) {
    const auto list = of(point, closest);
    for (const std::int32_t i : groups_.of(point)) {
      std::int64_t slot = i * k_;
      for (auto candidate = list.begin(); slot < (i + 1) * k_; ++candidate) {
        if (candidate->index == i) continue;
        result.indices[slot] = candidate->index;
        result.values[slot++] = space_.value(candidate->closeness);
      }
    }
  }

 private:
  void add(double closeness, std::span<const std::int32_t> copies) {
    for (std::size_t s = 0; s < copies.size() && s <= static_cast<std::size_t>(k_); ++s)
      list_.push_back({closeness, copies[s]});
  }

  const Space<T>& space_;
  const Copies& groups_;
  const std::int64_t k_;
  std::vector<Candidate> list_;
};

// The k closest of all points, from lists of the distinct ones, which are `ids` by their places.
template <class T>
Neighbors expanded(const Space<T>& space, const Copies& groups, std::span<const std::int32_t> ids,
                   Lists<T>& lists, std::int64_t k, ThreadPool& pool, const Report& report) {
  constexpr std::int64_t rows = 256;
  Neighbors result;
  result.indices.resize(space.n() * k);
  result.values.resize(space.n() * k);
  pool.ranges(
      static_cast<std::int64_t>(ids.size()), rows,
      [&](std::int64_t first, std::int64_t last, int) {
        Expansion<T> expansion(space, groups, k);
        for (std::int64_t p = first; p < last; ++p)
          expansion.write(ids[p], ids.size() > 1 ? lists.best(p) : std::span<const Candidate>(), result);
      },
      report);
  return result;
}

}  // namespace agglo
