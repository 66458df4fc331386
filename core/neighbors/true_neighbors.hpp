// What a search is measured by: the true lists of a sample of points.
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
#include "points/expand.hpp"
#include "points/order.hpp"
#include "points/space.hpp"
#include "simd/dot.hpp"

namespace agglo {

// The k closest of a sample of the places, among all.
template <class T>
class Truth {
 public:
  Truth(const Space<T>& space, std::span<const std::int32_t> ids, std::int64_t k,
        std::vector<std::int32_t> places)
      : space_(space), ids_(ids), k_(k), places_(std::move(places)), best_(places_.size()) {}

  std::span<const std::int32_t> places() const { return places_; }
  std::span<const Candidate> best(std::size_t query) const { return best_[query]; }

  // Whether a place is as close to a query as the k-th of its true list is, by their values as they are given
  // out: between points whose values are the same there is nothing to choose.
  bool right(std::size_t query, std::int64_t place) const {
    return place != places_[query] &&
           as_close(space_.value(space_.closeness(ids_[places_[query]], ids_[place])),
                    space_.value(best_[query].back().closeness));
  }
  bool as_close(float value, float last) const {
    return similarity(space_.metric()) ? value >= last : value <= last;
  }

  void find(const Partition& cells, Gemm<float>* sgemm, ThreadPool& pool, const Report& report) {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), d = space_.d(),
                       queries = static_cast<std::int64_t>(places_.size());
    std::vector<float> images, reaches(queries, -kInfinity);
    gather(space_, ids_, places_, images);
    // Those at home with a point give a first idea of how close its k-th is.
    pool.run(queries, [&](std::int64_t s, int) {
      for (const std::int32_t p : cells.members(cells.home(places_[s])))
        if (p != places_[s]) best_[s].push_back({space_.closeness(ids_[places_[s]], ids_[p]), ids_[p]});
      reaches[s] = trimmed(s);
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
          const std::vector<float> nobody(last - first, kInfinity);
          std::vector<float> offsets(last - first), bars;
          block.resize(last - first);
          hits.resize(last - first);
          std::iota(block.begin(), block.end(), static_cast<std::int32_t>(first));
          for (std::int64_t p = first; p < last; ++p) offsets[p - first] = offset(p);
          gather(space_, ids_, block, columns);
          multiply(sgemm, images.data(), queries, columns.data(), last - first, d, products);
          {
            const std::lock_guard lock(mutex);
            bars = reaches;
          }
          for (std::int64_t s = 0; s < queries; ++s) {
            const int count = survivors(products.data() + s * (last - first), offsets.data(), nobody.data(),
                                        0, bars[s], 0, static_cast<int>(last - first), hits.data());
            for (int h = 0; h < count; ++h) {
              const std::int64_t p = first + hits[h];
              if (p != places_[s])
                found.push_back({s, {space_.closeness(ids_[places_[s]], ids_[p]), ids_[p]}});
            }
          }
          const std::lock_guard lock(mutex);
          for (const auto& [query, candidate] : found) {
            best_[query].push_back(candidate);
            if (static_cast<std::int64_t>(best_[query].size()) >= 4 * k_ + 64)
              reaches[query] = trimmed(query);
          }
        },
        report);
    for (std::int64_t s = 0; s < queries; ++s) trimmed(s);
  }

 private:
  static constexpr std::int64_t kColumns = 1024;  // places that are multiplied at a time
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  // The least that closeness may take from a float32 product for a place.
  float offset(std::int64_t p) const {
    return static_cast<float>(space_.offset(ids_[p]) - slack_of(space_, ids_[p]));
  }

  // Keeps the k closest, in order, and returns how close others must be.
  float trimmed(std::int64_t query) {
    auto& list = best_[query];
    std::sort(list.begin(), list.end());
    if (static_cast<std::int64_t>(list.size()) < k_) return -kInfinity;
    list.resize(k_);
    const double last = list.back().closeness;
    float bar = static_cast<float>(last);
    if (bar > last) bar = std::nextafter(bar, -kInfinity);
    return bar + offset(places_[query]);
  }

  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
  const std::int64_t k_;
  std::vector<std::int32_t> places_;
  std::vector<std::vector<Candidate>> best_;
};

// The share of a sample's lists that is as close as the k-th of the true list. `sample` are points whose
// places the truth is about, from its query `from` on.
template <class T>
Recall measured(const Truth<T>& truth, const Neighbors& found, const Space<T>& space, const Copies& groups,
                std::span<const std::int32_t> sample, std::size_t from, std::int64_t k) {
  Expansion<T> expansion(space, groups, k);
  std::vector<std::int64_t> hits(sample.size(), 0);
  for (std::size_t s = 0; s < sample.size(); ++s) {
    const std::int32_t point = sample[s];
    float last = 0;
    std::int64_t seen = 0;
    for (const Candidate& candidate :
         expansion.of(groups.first[truth.places()[from + s]], truth.best(from + s)))
      if (candidate.index != point && seen < k) {
        last = space.value(candidate.closeness);
        ++seen;
      }
    for (std::int64_t slot = point * k; slot < (point + 1) * k; ++slot)
      hits[s] += truth.as_close(found.values[slot], last);
  }
  return recall_of(hits, k);
}

}  // namespace agglo
