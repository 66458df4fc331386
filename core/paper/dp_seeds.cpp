#include "paper/dp_seeds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/elementary.hpp"
#include "ivf/assign.hpp"
#include "simd/dot.hpp"

namespace agglo {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// Numbers that look random, the same on every machine.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  double operator()() {  // in [0, 1)
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

// Seeds are drawn by squared distances that are out of date: those to the seeds up to the last time that all
// points met the new ones. Such a draw counts with a chance of the true square over the old one, which makes
// its odds exactly those of the true squares. So seeds can meet the points in batches.
template <class T>
class Sower {
 public:
  Sower(const Points<T>& points, double lambda, SeedRule rule, std::uint64_t seed, Gemm<float>* sgemm,
        ThreadPool& pool, const Report& report)
      : points_(points),
        lambda_(lambda),
        rule_(rule),
        pool_(pool),
        report_(report),
        scan_(points, sgemm, pool),
        chance_(seed),
        square_(points.n, kFar),
        label_(points.n, -1) {}

  Seeds run() {
    const auto first = static_cast<std::int64_t>(chance_() * static_cast<double>(points_.n));
    seeds_.push_back(static_cast<std::int32_t>(std::min(first, points_.n - 1)));
    for (;;) {
      const bool improved = grow();
      const std::int64_t k = static_cast<std::int64_t>(seeds_.size());
      if (distances_.back() == 0 || k == points_.n || std::isinf(lambda_)) break;
      if (rule_ == SeedRule::bound ? improved : gone_past(k)) break;
      draw();
    }
    Seeds result;
    seeds_.resize(best_);
    distances_.resize(best_);
    // Back to where all seeds up to the batch with the best had been met, and on to the best.
    met_ = kept_met_;
    square_ = std::move(kept_square_);
    label_ = std::move(kept_label_);
    meet(best_);
    result.seeds = std::move(seeds_);
    result.labels = std::move(label_);
    result.distances = std::move(distances_);
    return result;
  }

 private:
  // Whether more seeds are most unlikely to pay, or cannot: their price alone is more than the best cost.
  bool gone_past(std::int64_t k) const {
    return lambda_ * static_cast<double>(k) >= cost_ ||
           k >= best_ + std::max<std::int64_t>(kPatience, best_ / 4);
  }

  // Shows the new seeds to all points; whether one of them is the best number of seeds so far.
  bool grow() {
    std::vector<double> old_square = square_;
    std::vector<std::int32_t> old_label = label_;
    const std::int64_t old_met = met_;
    meet(static_cast<std::int64_t>(seeds_.size()));
    bool improved = false;
    for (std::int64_t k = old_met + 1; k <= met_; ++k) {
      const double count = static_cast<double>(k), sum = distances_[k - 1];
      if (rule_ == SeedRule::bound) {
        if (improved ||
            (sum > 16 * lambda_ * count * (portable_log(count) / portable_log(2.0) + 2) && sum > 0))
          continue;
        improved = true;
        best_ = k;
      } else {
        const double cost = sum + lambda_ * count;
        if (best_ > 0 && cost >= cost_) continue;
        improved = true;
        cost_ = cost;
        best_ = k;
      }
    }
    if (improved) {
      kept_square_ = std::move(old_square);
      kept_label_ = std::move(old_label);
      kept_met_ = old_met;
    }
    return improved;
  }

  // Shows the seeds from met_ up to `to` to all points, and notes the sum of squares after each.
  void meet(std::int64_t to) {
    const std::int64_t d = points_.d, fresh = to - met_, strips = (points_.n + kStrip - 1) / kStrip;
    std::vector<double> centers(fresh * d);
    for (std::int64_t s = 0; s < fresh; ++s)
      std::copy_n(points_.row(seeds_[met_ + s]), d, centers.begin() + s * d);
    const std::vector<std::int32_t> ids = index_range(0, fresh);
    std::vector<double> gains(strips * fresh, 0.0), sums(strips);
    scratch_.resize(pool_.size());
    pool_.run(
        strips,
        [&](std::int64_t strip, int worker) {
          const std::vector<std::int32_t> rows =
              index_range(strip * kStrip, std::min(points_.n, (strip + 1) * kStrip));
          double* gain = gains.data() + strip * fresh;
          scan_.pairs(
              rows, centers.data(), ids, false, scratch_[worker],
              [&](std::int64_t r) { return square_[rows[r]]; },
              [&](std::int64_t r, std::int64_t c, double square) {
                double& mine = square_[rows[r]];
                if (square >= mine) return;
                if (mine < kFar) gain[c] += mine - square;
                mine = square;
                label_[rows[r]] = static_cast<std::int32_t>(met_ + c);
              });
          for (const std::int32_t i : rows) sums[strip] += square_[i];
        },
        [&](std::int64_t, std::int64_t) {
          if (report_) report_(met_, points_.n);
        });
    // Backwards from the sum after all of them, in which no rounding has piled up.
    distances_.resize(to);
    distances_[to - 1] = std::accumulate(sums.begin(), sums.end(), 0.0);
    for (std::int64_t s = fresh - 1; s > 0; --s) {
      double gain = 0;
      for (std::int64_t strip = 0; strip < strips; ++strip) gain += gains[strip * fresh + s];
      distances_[met_ + s - 1] = distances_[met_ + s] + gain;
    }
    sums_.resize(strips);
    std::partial_sum(sums.begin(), sums.end(), sums_.begin());
    met_ = to;
  }

  // Draws new seeds: about half as many as there are, for more would be rejected too often.
  void draw() {
    const std::int64_t d = points_.d, enough = std::clamp<std::int64_t>(met_ / 2, 1, kMostDrawn);
    std::int64_t misses = 0;
    while (static_cast<std::int64_t>(seeds_.size()) < met_ + enough) {
      const std::int64_t i = drawn(chance_() * sums_.back());
      double square = square_[i];
      for (std::size_t s = met_; s < seeds_.size(); ++s)
        square = std::min(square, squared_distance(points_.row(i), points_.row(seeds_[s]), d));
      if (chance_() * square_[i] < square) {
        seeds_.push_back(static_cast<std::int32_t>(i));
      } else if (++misses >= kMisses && static_cast<std::int64_t>(seeds_.size()) > met_) {
        break;
      }
    }
  }

  // The point at which the running sum of squares passes `sum`.
  std::int64_t drawn(double sum) const {
    const std::int64_t strip = std::upper_bound(sums_.begin(), sums_.end(), sum) - sums_.begin();
    std::int64_t last = -1;  // of those that can be drawn; rounding may lead past the end
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

  static constexpr std::int64_t kStrip = 512;  // points whose sums are made apart; part of the definition
  static constexpr std::int64_t kMostDrawn = 512, kMisses = 256, kPatience = 100;

  const Points<T> points_;
  const double lambda_;
  const SeedRule rule_;
  ThreadPool& pool_;
  const Report& report_;
  CenterScan<T> scan_;
  Chance chance_;
  std::vector<std::int32_t> seeds_;
  std::vector<double> distances_;
  std::vector<double> square_;
  std::vector<std::int32_t> label_;
  std::vector<double> sums_;  // of squares, up to the end of each strip
  std::int64_t met_ = 0;      // seeds that all points have met
  std::int64_t best_ = 0;
  double cost_ = kFar;
  std::int64_t kept_met_ = 0;  // how things were before the batch with the best
  std::vector<double> kept_square_;
  std::vector<std::int32_t> kept_label_;
  std::vector<typename CenterScan<T>::Scratch> scratch_;
};

}  // namespace

template <class T>
Seeds dp_seeds(const Points<T>& points, double lambda, SeedRule rule, std::uint64_t seed, Gemm<float>* sgemm,
               ThreadPool& pool, const Report& report) {
  return Sower<T>(points, lambda, rule, seed, sgemm, pool, report).run();
}

template Seeds dp_seeds(const Points<float>&, double, SeedRule, std::uint64_t, Gemm<float>*, ThreadPool&,
                        const Report&);
template Seeds dp_seeds(const Points<double>&, double, SeedRule, std::uint64_t, Gemm<float>*, ThreadPool&,
                        const Report&);

}  // namespace agglo
