// The true neighbours of a sample of points, which are the reference for the recall of a search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/blas.hpp"
#include "base/thread_pool.hpp"
#include "ivf/ivf.hpp"
#include "ivf/partition.hpp"
#include "neighbors/lists.hpp"
#include "points/duplicates.hpp"
#include "points/expand.hpp"
#include "points/rows.hpp"
#include "points/space.hpp"
#include "simd/dot.hpp"

namespace agglo {

// The k nearest distinct points of each point in a sample. The sample consists of positions.
template <class T>
class TrueNeighbors {
 public:
  TrueNeighbors(const Space<T>& space, std::span<const std::int32_t> ids, std::int64_t k,
                std::vector<std::int32_t> positions)
      : space_(space), ids_(ids), k_(k), positions_(std::move(positions)), best_(positions_.size()) {}

  std::span<const std::int32_t> positions() const { return positions_; }
  std::span<const Candidate> best(std::size_t query) const { return best_[query]; }

  // Return whether a position is at least as close to a query as the query's k-th true neighbour.
  // Values are compared in float32, as in the result. Points that tie with the k-th count as true neighbours.
  bool is_true(std::size_t query, std::int64_t position) const {
    return position != positions_[query] &&
           is_as_close(space_.value(space_.similarity(ids_[positions_[query]], ids_[position])),
                       space_.value(best_[query].back().similarity));
  }
  bool is_as_close(float value, float last) const {
    return is_similarity(space_.metric()) ? value >= last : value <= last;
  }

  // Find the true neighbours. The partition provides initial bounds, and does not affect the result.
  void find(const Partition& partition, Gemm<float>* sgemm, ThreadPool& pool, const Report& report) {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), d = space_.d(),
                       queries = static_cast<std::int64_t>(positions_.size());
    std::vector<float> sample_rows, cutoffs(queries, -kInfinity);
    gather_normalized(space_, ids_, positions_, sample_rows);
    // The k-th nearest point in a query's own inverted list gives the initial bound.
    pool.run(queries, [&](std::int64_t s, int) {
      for (const std::int32_t p : partition.members(partition.list(positions_[s])))
        if (p != positions_[s])
          best_[s].push_back({space_.similarity(ids_[positions_[s]], ids_[p]), ids_[p]});
      cutoffs[s] = keep_nearest(s);
      best_[s].clear();
    });
    std::mutex mutex;
    struct Found {
      std::int64_t query;
      Candidate candidate;
    };
    pool.ranges(
        n, kColumns,
        [&](std::int64_t first, std::int64_t last, int) {
          thread_local std::vector<float> columns, products;
          thread_local std::vector<std::int32_t> block, hits;
          std::vector<Found> found;
          const std::vector<float> no_cutoffs(last - first, kInfinity);
          std::vector<float> offsets(last - first), current;
          block.resize(last - first);
          hits.resize(last - first);
          std::iota(block.begin(), block.end(), static_cast<std::int32_t>(first));
          for (std::int64_t p = first; p < last; ++p) offsets[p - first] = offset(p);
          gather_normalized(space_, ids_, block, columns);
          multiply_blas(sgemm, sample_rows.data(), queries, columns.data(), last - first, d, products);
          {
            const std::lock_guard lock(mutex);
            current = cutoffs;
          }
          for (std::int64_t s = 0; s < queries; ++s) {
            const int count =
                select_above(products.data() + s * (last - first), offsets.data(), no_cutoffs.data(), 0,
                             current[s], 0, static_cast<int>(last - first), hits.data());
            for (int h = 0; h < count; ++h) {
              const std::int64_t p = first + hits[h];
              if (p != positions_[s])
                found.push_back({s, {space_.similarity(ids_[positions_[s]], ids_[p]), ids_[p]}});
            }
          }
          const std::lock_guard lock(mutex);
          for (const auto& [query, candidate] : found) {
            best_[query].push_back(candidate);
            if (static_cast<std::int64_t>(best_[query].size()) >= 4 * k_ + 64)
              cutoffs[query] = keep_nearest(query);
          }
        },
        report);
    for (std::int64_t s = 0; s < queries; ++s) keep_nearest(s);
  }

 private:
  static constexpr std::int64_t kColumns = 1024;  // points per matrix product
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  // Returns a lower bound of a position's offset. A similarity is a product minus the offsets of both points.
  float offset(std::int64_t p) const {
    return static_cast<float>(space_.offset(ids_[p]) - float32_slack(space_, ids_[p]));
  }

  // Keeps the k nearest candidates of a query, sorted. Returns the cutoff for the remaining products.
  float keep_nearest(std::int64_t query) {
    auto& candidates = best_[query];
    std::sort(candidates.begin(), candidates.end());
    if (static_cast<std::int64_t>(candidates.size()) < k_) return -kInfinity;
    candidates.resize(k_);
    return round_down(candidates.back().similarity) + offset(positions_[query]);
  }

  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
  const std::int64_t k_;
  std::vector<std::int32_t> positions_;
  std::vector<std::vector<Candidate>> best_;
};

// Measure the recall of neighbour lists. The sample points are the queries of `truth` with numbers >= `from`.
template <class T>
Recall measure_recall(const TrueNeighbors<T>& truth, const Neighbors& found, const Space<T>& space,
                      const Duplicates& duplicates, std::span<const std::int32_t> sample, std::size_t from,
                      std::int64_t k) {
  DuplicateExpansion<T> expansion(space, duplicates, k);
  std::vector<std::int64_t> hits(sample.size(), 0);
  for (std::size_t s = 0; s < sample.size(); ++s) {
    const std::int32_t point = sample[s];
    float last = 0;
    std::int64_t seen = 0;
    for (const Candidate& candidate :
         expansion.expand(duplicates.first[truth.positions()[from + s]], truth.best(from + s)))
      if (candidate.index != point && seen < k) {
        last = space.value(candidate.similarity);
        ++seen;
      }
    for (std::int64_t slot = point * k; slot < (point + 1) * k; ++slot)
      hits[s] += truth.is_as_close(found.values[slot], last);
  }
  return estimate_recall(hits, k);
}

}  // namespace agglo
