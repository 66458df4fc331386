#include "paper/dp_seeds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/elementary.hpp"
#include "base/random.hpp"
#include "paper/center_scan.hpp"
#include "simd/dot.hpp"

namespace agglo::paper {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// Samples seeds in batches, by rejection sampling.
//
// Let q be the squared distance of a point to the nearest seed of earlier batches.
// Let p be the squared distance of the point to the nearest of all seeds, including the current batch.
// A point is drawn with probability proportional to q, and accepted with probability p / q.
// So the point is sampled with probability proportional to p, as k-means++ requires.
class SeedSampler {
 public:
  SeedSampler(const AnyPoints& points, double lam, SeedRule rule, std::uint64_t seed, Gemm<float>* sgemm,
              ThreadPool& pool, const Report& report)
      : points_(points),
        lam_(lam),
        rule_(rule),
        pool_(pool),
        report_(report),
        scan_(points, sgemm, pool),
        random_state_(seed),
        square_(points.n, kFar),
        label_(points.n, -1) {}

  Seeds run() {
    const auto first = static_cast<std::int64_t>(draw_uniform() * static_cast<double>(points_.n));
    seeds_.push_back(static_cast<std::int32_t>(std::min(first, points_.n - 1)));
    for (;;) {
      const bool improved = assign_batch();
      const std::int64_t k = static_cast<std::int64_t>(seeds_.size());
      if (distances_.back() == 0 || k == points_.n || std::isinf(lam_)) break;
      if (rule_ == SeedRule::bound ? improved : more_seeds_cannot_pay(k)) break;
      draw_batch();
    }
    Seeds result;
    seeds_.resize(best_);
    distances_.resize(best_);
    // Restore the state before the batch in which the best number of seeds was reached.
    // Then assign the points to the seeds of that batch, up to the best number of seeds.
    assigned_ = kept_assigned_;
    square_ = std::move(kept_square_);
    label_ = std::move(kept_label_);
    assign(best_);
    result.seeds = std::move(seeds_);
    result.labels = std::move(label_);
    result.distances = std::move(distances_);
    return result;
  }

 private:
  // Draws a random number in [0, 1).
  double draw_uniform() { return static_cast<double>(next_splitmix64(random_state_) >> 11) * 0x1p-53; }

  // Returns whether more than k seeds can hardly have a lower cost than the best number of seeds so far.
  // If λ k is at least the smallest cost so far, a lower cost is impossible.
  // If many seeds in a row have not lowered the cost, further seeds are unlikely to lower it.
  bool more_seeds_cannot_pay(std::int64_t k) const {
    return lam_ * static_cast<double>(k) >= cost_ ||
           k >= best_ + std::max<std::int64_t>(kPatience, best_ / 4);
  }

  // Assigns each point to its nearest seed of the last batch, if that seed is nearer than the point's current
  // one. Returns whether the best number of seeds has changed.
  bool assign_batch() {
    std::vector<double> old_square = square_;
    std::vector<std::int32_t> old_label = label_;
    const std::int64_t old_assigned = assigned_;
    assign(static_cast<std::int64_t>(seeds_.size()));
    bool improved = false;
    for (std::int64_t k = old_assigned + 1; k <= assigned_; ++k) {
      const double count = static_cast<double>(k), sum = distances_[k - 1];
      if (rule_ == SeedRule::bound) {
        if (improved || (sum > 16 * lam_ * count * (portable_log(count) / portable_log(2.0) + 2) && sum > 0))
          continue;
        improved = true;
        best_ = k;
      } else {
        const double cost = sum + lam_ * count;
        if (best_ > 0 && cost >= cost_) continue;
        improved = true;
        cost_ = cost;
        best_ = k;
      }
    }
    if (improved) {
      kept_square_ = std::move(old_square);
      kept_label_ = std::move(old_label);
      kept_assigned_ = old_assigned;
    }
    return improved;
  }

  // Compares all points with the seeds from number assigned_ to number to - 1.
  // After each of these seeds, computes the sum of squared distances to the nearest seed.
  void assign(std::int64_t to) {
    const std::int64_t d = points_.d, batch = to - assigned_, strips = (points_.n + kStrip - 1) / kStrip;
    std::vector<double> centers(batch * d);
    for (std::int64_t s = 0; s < batch; ++s)
      widen_row(points_, seeds_[assigned_ + s], centers.data() + s * d);
    const std::vector<std::int32_t> ids = index_range(0, batch);
    std::vector<double> gains(strips * batch, 0.0), sums(strips);
    scratch_.resize(pool_.size());
    pool_.run(
        strips,
        [&](std::int64_t strip, int worker) {
          const std::vector<std::int32_t> rows =
              index_range(strip * kStrip, std::min(points_.n, (strip + 1) * kStrip));
          double* gain = gains.data() + strip * batch;
          scan_.pairs(
              rows, centers.data(), ids, false, scratch_[worker],
              [&](std::int64_t r) { return square_[rows[r]]; },
              [&](std::int64_t r, std::int64_t c, double square) {
                double& mine = square_[rows[r]];
                if (square >= mine) return;
                if (mine < kFar) gain[c] += mine - square;
                mine = square;
                label_[rows[r]] = static_cast<std::int32_t>(assigned_ + c);
              });
          for (const std::int32_t i : rows) sums[strip] += square_[i];
        },
        [&](std::int64_t, std::int64_t) {
          if (report_) report_(assigned_, points_.n);
        });
    // Compute the sums backwards, because the last sum has no accumulated rounding errors.
    distances_.resize(to);
    distances_[to - 1] = std::accumulate(sums.begin(), sums.end(), 0.0);
    for (std::int64_t s = batch - 1; s > 0; --s) {
      double gain = 0;
      for (std::int64_t strip = 0; strip < strips; ++strip) gain += gains[strip * batch + s];
      distances_[assigned_ + s - 1] = distances_[assigned_ + s] + gain;
    }
    sums_.resize(strips);
    std::partial_sum(sums.begin(), sums.end(), sums_.begin());
    assigned_ = to;
  }

  // Draws a batch of new seeds, about half as many as there are seeds. A larger batch would reject too many
  // points.
  void draw_batch() {
    const std::int64_t d = points_.d, batch = std::clamp<std::int64_t>(assigned_ / 2, 1, kMaxBatch);
    std::int64_t rejected = 0;
    std::vector<double> centers, row(d);  // the seeds of this batch, and the drawn point
    while (static_cast<std::int64_t>(seeds_.size()) < assigned_ + batch) {
      const std::int64_t i = find_by_cumulative_sum(draw_uniform() * sums_.back());
      double square = square_[i];
      widen_row(points_, i, row.data());
      for (std::size_t s = 0; s < centers.size(); s += d)
        square = std::min(square, squared_distance(row.data(), centers.data() + s, d));
      if (draw_uniform() * square_[i] < square) {
        seeds_.push_back(static_cast<std::int32_t>(i));
        centers.insert(centers.end(), row.begin(), row.end());
      } else if (++rejected >= kMaxRejected && static_cast<std::int64_t>(seeds_.size()) > assigned_) {
        break;
      }
    }
  }

  // Returns the first point at which the cumulative sum of squared distances is larger than `sum`.
  std::int64_t find_by_cumulative_sum(double sum) const {
    const std::int64_t strip = std::upper_bound(sums_.begin(), sums_.end(), sum) - sums_.begin();
    std::int64_t last = -1;  // the last point with a positive square, in case rounding keeps `left` positive
    double left = strip > 0 ? sum - sums_[strip - 1] : sum;
    const std::int64_t begin =
        std::min<std::int64_t>(strip, static_cast<std::int64_t>(sums_.size()) - 1) * kStrip;
    for (std::int64_t i = begin; i < std::min(points_.n, begin + kStrip); ++i) {
      if (square_[i] == 0) continue;
      last = i;
      left -= square_[i];
      if (left < 0) break;
    }
    return last >= 0 ? last : std::max_element(square_.begin(), square_.end()) - square_.begin();
  }

  static constexpr std::int64_t kStrip = 512;  // points per partial sum; another value changes the results
  static constexpr std::int64_t kMaxBatch = 512, kMaxRejected = 256, kPatience = 100;

  const AnyPoints points_;
  const double lam_;
  const SeedRule rule_;
  ThreadPool& pool_;
  const Report& report_;
  CenterScan scan_;
  std::uint64_t random_state_;
  std::vector<std::int32_t> seeds_;
  std::vector<double> distances_;
  std::vector<double> square_;
  std::vector<std::int32_t> label_;
  // The cumulative sum of squared distances up to the end of each strip of kStrip points.
  std::vector<double> sums_;
  std::int64_t assigned_ = 0;  // number of seeds that all points have been compared with
  std::int64_t best_ = 0;      // the number of seeds for which the cost is smallest so far
  double cost_ = kFar;
  std::int64_t kept_assigned_ = 0;  // the kept_ members hold the state before the batch that reached best_
  std::vector<double> kept_square_;
  std::vector<std::int32_t> kept_label_;
  std::vector<CenterScan::Scratch> scratch_;
};

}  // namespace

Seeds draw_dp_seeds(const AnyPoints& points, double lam, SeedRule rule, std::uint64_t seed,
                    Gemm<float>* sgemm, ThreadPool& pool, const Report& report) {
  return SeedSampler(points, lam, rule, seed, sgemm, pool, report).run();
}

}  // namespace agglo::paper
