// Local search over exemplars. It removes or moves exemplars as long as this lowers the cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "paper/center_scan.hpp"
#include "simd/dot.hpp"

namespace agglo::paper {

// Improves a set of exemplars until no step lowers the facility-location cost.
// `centers` are the points in float64. `open` are the initial exemplars. There must be at least one.
class LocalSearch {
 public:
  LocalSearch(const CenterScan& scan, std::span<const double> weights, std::span<const double> centers,
              double lam, std::vector<std::int32_t> open, ThreadPool& pool, const Report& report)
      : scan_(scan),
        weights_(weights),
        centers_(centers),
        lam_(lam),
        pool_(pool),
        report_(report),
        everyone_(index_range(0, scan.points().n)),
        scratch_(pool.size()),
        open_(std::move(open)) {
    run();
  }

  double cost() const { return cost_; }
  std::vector<std::int32_t> take_exemplars() { return std::move(open_); }  // sorted by id
  std::vector<std::int32_t> take_labels() { return std::move(nearest_); }  // exemplar index per point

 private:
  static constexpr double kFar = std::numeric_limits<double>::infinity();

  const AnyPoints& points() const { return scan_.points(); }

  // Repeats two steps as long as the cost decreases.
  // Step 1 assigns every point to its nearest exemplar.
  // Step 2 removes exemplars that lower the sum of distances by less than λ.
  // If there are no such exemplars, step 2 moves exemplars to points closer to the cluster means.
  void run() {
    std::sort(open_.begin(), open_.end());
    for (;;) {
      const std::int64_t k = static_cast<std::int64_t>(open_.size());
      std::vector<double> first(points().n, kFar), second(points().n, kFar);
      std::vector<std::int32_t> next(points().n, -1);
      nearest_.assign(points().n, -1);
      const std::int64_t strips = (points().n + scan_.block() - 1) / scan_.block();
      pool_.run(
          strips,
          [&](std::int64_t strip, int worker) {
            const std::int64_t top = strip * scan_.block();
            const auto rows = std::span(everyone_).subspan(top, std::min(scan_.block(), points().n - top));
            scan_.pairs(
                rows, centers_.data(), open_, false, scratch_[worker],
                [&](std::int64_t r) { return second[rows[r]]; },
                [&](std::int64_t r, std::int64_t c, double square) {
                  const std::int32_t i = rows[r];
                  if (square < first[i]) {
                    second[i] = std::exchange(first[i], square);
                    next[i] = std::exchange(nearest_[i], static_cast<std::int32_t>(c));
                  } else if (square < second[i]) {
                    second[i] = square;
                    next[i] = static_cast<std::int32_t>(c);
                  }
                });
          },
          report_);
      cost_ = lam_ * static_cast<double>(k);
      std::vector<double> loss(k, 0.0);
      for (std::int64_t i = 0; i < points().n; ++i) {
        cost_ += weights_[i] * first[i];
        loss[nearest_[i]] += weights_[i] * (second[i] - first[i]);
      }
      if (!remove_exemplars(loss, next) && !move_exemplars()) return;
    }
  }

  // Moves each exemplar to the point nearest to the mean of its cluster. Returns whether any exemplar moved.
  bool move_exemplars() {
    const std::size_t k = open_.size();
    std::vector<double> means(k * points().d, 0.0), weight(k, 0.0), least(k, kFar);
    for (std::int64_t i = 0; i < points().n; ++i) {
      weight[nearest_[i]] += weights_[i];
      for (std::int64_t j = 0; j < points().d; ++j)
        means[nearest_[i] * points().d + j] += weights_[i] * centers_[i * points().d + j];
    }
    for (std::size_t c = 0; c < k; ++c)
      for (std::int64_t j = 0; j < points().d; ++j) means[c * points().d + j] /= weight[c];
    const auto to_mean = [&](std::int64_t i, std::size_t c) {
      return squared_distance(centers_.data() + i * points().d, means.data() + c * points().d, points().d);
    };
    for (std::size_t c = 0; c < k; ++c)
      least[c] = to_mean(open_[c], c) * (1 - 1e-9);  // the margin prevents moves by rounding errors
    bool any = false;
    for (std::int64_t i = 0; i < points().n; ++i) {
      const std::int32_t c = nearest_[i];
      const double square = to_mean(i, c);
      if (square >= least[c]) continue;
      least[c] = square;
      open_[c] = static_cast<std::int32_t>(i);
      any = true;
    }
    if (any) std::sort(open_.begin(), open_.end());
    return any;
  }

  // Removes exemplars whose loss is below λ. Returns whether any exemplar was removed.
  // loss[c] is the increase of the sum of squared distances if exemplar c is removed.
  // next[i] is the second nearest exemplar of point i. If its nearest exemplar is removed, point i moves to
  // next[i]. So an exemplar and the second nearest exemplars of its points are never removed together.
  bool remove_exemplars(const std::vector<double>& loss, const std::vector<std::int32_t>& next) {
    const std::int64_t k = static_cast<std::int64_t>(open_.size());
    if (k == 1) return false;
    // For each exemplar, the second nearest exemplar of every point that is assigned to it.
    std::vector<std::vector<std::int32_t>> fallback(k);
    for (std::int64_t i = 0; i < points().n; ++i) fallback[nearest_[i]].push_back(next[i]);
    std::vector<std::int32_t> order = index_range(0, k);
    std::sort(order.begin(), order.end(),
              [&](std::int32_t a, std::int32_t b) { return std::pair(loss[a], a) < std::pair(loss[b], b); });
    std::vector<char> needed(k, false), removed(k, false);
    bool any = false;
    for (const std::int32_t c : order) {
      if (!(loss[c] < lam_)) break;
      if (needed[c] || std::any_of(fallback[c].begin(), fallback[c].end(),
                                   [&](std::int32_t other) { return removed[other]; }))
        continue;
      removed[c] = true;
      any = true;
      for (const std::int32_t other : fallback[c]) needed[other] = true;
    }
    std::vector<std::int32_t> kept;
    for (std::int64_t c = 0; c < k; ++c)
      if (!removed[c]) kept.push_back(open_[c]);
    open_ = std::move(kept);
    return any;
  }

  const CenterScan& scan_;
  const std::span<const double> weights_, centers_;
  const double lam_;
  ThreadPool& pool_;
  const Report report_;
  const std::vector<std::int32_t> everyone_;
  std::vector<CenterScan::Scratch> scratch_;
  std::vector<std::int32_t> open_, nearest_;
  double cost_ = kFar;
};

}  // namespace agglo::paper
