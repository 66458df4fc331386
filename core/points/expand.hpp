// Conversion of the neighbour lists of distinct points to the neighbour lists of all points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "neighbors/exact.hpp"
#include "neighbors/lists.hpp"
#include "points/duplicates.hpp"
#include "points/space.hpp"

namespace agglo {

// Adds duplicates to neighbour lists of distinct points.
// Each of the k nearest points of x is a duplicate of x, or of one of the k nearest distinct points of x.
class DuplicateExpansion {
 public:
  DuplicateExpansion(const Space& space, const Duplicates& duplicates, std::int64_t k)
      : space_(space), duplicates_(duplicates), k_(k) {}

  // Return all points that may be among the k nearest points of `point` or of its duplicates, nearest first.
  // `nearest` holds the k nearest distinct points. The result may include `point` itself.
  // The result is valid until the next call.
  std::span<const Candidate> expand(std::int32_t point, std::span<const Candidate> nearest) {
    if (duplicates_.has_none()) return nearest;
    add_all(nearest);
    if (duplicates_.group(point).size() > 1) add(space_.similarity(point, point), duplicates_.group(point));
    std::sort(list_.begin(), list_.end());
    return list_;
  }

  // Write the k nearest points of `point` and of each of its duplicates to their rows of the result.
  void write(std::int32_t point, std::span<const Candidate> nearest, Neighbors& result) {
    const auto list = expand(point, nearest);
    for (const std::int32_t i : duplicates_.group(point)) {
      std::int64_t slot = i * k_;
      for (auto candidate = list.begin(); slot < (i + 1) * k_; ++candidate) {
        if (candidate->index == i) continue;
        result.indices[slot] = candidate->index;
        result.values[slot++] = space_.value(candidate->similarity);
      }
    }
  }

  // Write the k nearest points of a query to row number `row` of the result.
  // A query is not one of the points, so the query has no duplicates.
  void write_query(std::int64_t row, std::span<const Candidate> nearest, Neighbors& result) {
    if (!duplicates_.has_none()) {
      add_all(nearest);
      std::sort(list_.begin(), list_.end());
      nearest = list_;
    }
    for (std::int64_t s = 0; s < k_; ++s) {
      result.indices[row * k_ + s] = nearest[s].index;
      result.values[row * k_ + s] = space_.value(nearest[s].similarity);
    }
  }

 private:
  void add_all(std::span<const Candidate> nearest) {
    list_.clear();
    for (const Candidate& candidate : nearest) add(candidate.similarity, duplicates_.group(candidate.index));
  }

  void add(double similarity, std::span<const std::int32_t> points) {
    for (std::size_t s = 0; s < points.size() && s <= static_cast<std::size_t>(k_); ++s)
      list_.push_back({similarity, points[s]});
  }

  const Space& space_;
  const Duplicates& duplicates_;
  const std::int64_t k_;
  std::vector<Candidate> list_;
};

// Return the k nearest neighbours of all points.
// `candidates` holds the candidate lists of the distinct points `ids`.
inline Neighbors expand_duplicates(const Space& space, const Duplicates& duplicates,
                                   std::span<const std::int32_t> ids, CandidateLists& candidates,
                                   std::int64_t k, ThreadPool& pool, const Report& report) {
  constexpr std::int64_t rows = 256;
  Neighbors result;
  result.indices.resize(space.n() * k);
  result.values.resize(space.n() * k);
  pool.ranges(
      static_cast<std::int64_t>(ids.size()), rows,
      [&](std::int64_t first, std::int64_t last, int) {
        DuplicateExpansion expansion(space, duplicates, k);
        for (std::int64_t p = first; p < last; ++p)
          expansion.write(ids[p], ids.size() > 1 ? candidates.best(p) : std::span<const Candidate>(), result);
      },
      report);
  return result;
}

}  // namespace agglo
