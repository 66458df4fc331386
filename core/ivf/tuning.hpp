// Tuning of an IVF search: choose n_probes and n_candidates so that a sample of points reaches a recall.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "ivf/partition.hpp"
#include "ivf/scan.hpp"
#include "neighbors/recall.hpp"

namespace agglo {

// Estimate the cost of an exact search of n points with d columns.
// The unit is about one nanosecond per point, as for ProbeTuner::Choice::cost.
//
// An exact search compares n / 2 pairs per point, by their codes. AVX2 code takes about twice as long as
// AVX-512 code, in exact searches and in IVF searches. The estimates do not depend on the SIMD level of the
// processor. So the choice between both searches does not depend on the processor either.
inline double estimate_exact_cost(std::int64_t n, std::int64_t d) {
  return static_cast<double>(n) / 2 * (0.45 + 0.0043 * static_cast<double>(d));
}

// Chooses the pair (n_probes, n_candidates) that reaches a recall at the lowest cost.
class ProbeTuner {
 public:
  // Tune a search for `wanted` neighbours of each of n points with d columns.
  // Inverted lists have about `size` points. An int8 code has `coded` bytes.
  ProbeTuner(std::int64_t n, std::int64_t wanted, std::int64_t size, std::int64_t coded, std::int64_t d)
      : wanted_(wanted),
        max_probes_(std::max(kSeen, n / 3) / size + 1),
        probe_cost_(static_cast<double>(size) * (0.25 + 0.006 * static_cast<double>(coded)) +
                    0.5 * static_cast<double>(coded)),
        rerank_cost_(25 + 0.12 * static_cast<double>(d)) {
    // At least wanted + 1 candidates are needed, because the point itself is one of the candidates.
    for (std::int64_t n_candidates = wanted + 1; n_candidates <= kMaxCandidates * (wanted + 1);
         n_candidates += std::max<std::int64_t>(1, n_candidates / 12))
      n_candidates_.push_back(n_candidates);
  }

  // Measure the recall of the first `sample` points of `truth`, for every pair (n_probes, n_candidates).
  void measure_sample(const TrueNeighbors& truth, const Partition& partition, const CodedLists& coded,
                      std::int64_t sample, std::vector<IvfScanner>& scanners, ThreadPool& pool) {
    const std::int64_t max_probes =
        std::min(max_probes_, static_cast<std::int64_t>(partition.nearest(0).size()));
    for (std::int64_t f = 1; f < max_probes; f += std::max<std::int64_t>(1, f / 6)) n_probes_.push_back(f);
    n_probes_.push_back(max_probes);
    shares_.assign(sample, {});
    pool.run(sample, [&](std::int64_t s, int worker) {
      IvfScanner::Scores scores;
      scanners[worker].score_probes(truth.positions()[s], max_probes, scores);
      struct Seen {
        float score;
        std::int32_t slot;
        int is_true = -1;  // -1 if not computed yet
      };
      std::vector<Seen> best;
      std::int64_t rank = 0;
      for (const std::int64_t n_probes : n_probes_) {
        const float threshold = best.size() < static_cast<std::size_t>(n_candidates_.back())
                                    ? std::numeric_limits<float>::lowest()
                                    : best.back().score;
        for (; rank < n_probes; ++rank)
          for (std::int64_t at = scores.begins[rank]; at < scores.begins[rank + 1]; ++at)
            if (scores.scores[at] >= threshold)
              best.push_back({scores.scores[at], static_cast<std::int32_t>(coded.begin(scores.lists[rank]) +
                                                                           at - scores.begins[rank])});
        std::stable_sort(best.begin(), best.end(),
                         [](const Seen& a, const Seen& b) { return a.score > b.score; });
        if (best.size() > static_cast<std::size_t>(n_candidates_.back())) best.resize(n_candidates_.back());
        std::int64_t hits = 0;
        std::size_t seen = 0;
        for (const std::int64_t n_candidates : n_candidates_) {
          for (; seen < best.size() && static_cast<std::int64_t>(seen) < n_candidates; ++seen) {
            if (best[seen].is_true < 0)
              best[seen].is_true = truth.is_true(s, coded.position(best[seen].slot));
            hits += best[seen].is_true;
          }
          shares_[s].push_back(static_cast<float>(std::min(hits, wanted_)) / static_cast<float>(wanted_));
        }
      }
    });
  }

  // The chosen pair (n_probes, n_candidates). `is_enough` is true if the sample reaches the recall.
  //
  // choose() returns the cheapest pair that reaches the recall plus a margin for the sampling error.
  // If no pair reaches this sum, choose() reduces the margin.
  // If no pair reaches the recall without a margin, `is_enough` is false.
  // In this case, the choice is the cheapest pair whose recall is close to the highest recall.
  // `cost` is the estimated cost of the search, in about nanoseconds per point.
  struct Choice {
    std::int64_t n_probes, n_candidates;
    bool is_enough;
    double cost;
  };
  Choice choose(double recall) const {
    for (const double errors : {1.5, 0.75, 0.0})  // margins in standard errors
      if (const auto best = choose(recall, errors)) return *best;
    double highest = 0;
    for (std::size_t pair = 0; pair < n_probes_.size() * n_candidates_.size(); ++pair)
      highest = std::max(highest, mean_share(pair).first);
    Choice best = *choose(highest - kLittle, 0);
    best.is_enough = false;
    return best;
  }

  // Return the recall of the sample for a choice of (n_probes, n_candidates).
  Recall sample_recall(const Choice& choice) const {
    const auto f = std::find(n_probes_.begin(), n_probes_.end(), choice.n_probes) - n_probes_.begin(),
               c = std::find(n_candidates_.begin(), n_candidates_.end(), choice.n_candidates) -
                   n_candidates_.begin();
    std::vector<double> shares;
    for (const auto& own : shares_) shares.push_back(own[f * n_candidates_.size() + c]);
    return estimate_recall(shares, wanted_);
  }

 private:
  static constexpr double kLittle = 0.002;  // a recall this close to the highest recall is accepted
  // A point scans lists with at most about max(kSeen, n / 3) points in total.
  static constexpr std::int64_t kSeen = 32768;
  static constexpr std::int64_t kMaxCandidates = 8;  // maximum number of candidates per neighbour

  std::optional<Choice> choose(double recall, double errors) const {
    std::optional<Choice> best;
    for (std::size_t f = 0; f < n_probes_.size(); ++f)
      for (std::size_t c = 0; c < n_candidates_.size(); ++c) {
        const double cost = static_cast<double>(n_probes_[f]) * probe_cost_ +
                            static_cast<double>(n_candidates_[c]) * rerank_cost_;
        if (best && cost >= best->cost) continue;
        const auto [mean, error] = mean_share(f * n_candidates_.size() + c);
        if (mean < recall + std::min(errors * error, 0.6 * (1 - recall))) continue;
        best = {n_probes_[f], n_candidates_[c], true, cost};
      }
    return best;
  }

  // Returns the mean recall of the sample for a pair (n_probes, n_candidates), and the standard error of the
  // mean.
  std::pair<double, double> mean_share(std::size_t pair) const {
    double sum = 0, squares = 0;
    for (const auto& shares : shares_) {
      sum += shares[pair];
      squares += static_cast<double>(shares[pair]) * shares[pair];
    }
    const double m = static_cast<double>(shares_.size()), mean = sum / m;
    const double error = std::sqrt(std::max(0.0, squares / m - mean * mean) / std::max(m - 1, 1.0));
    return {mean, error};
  }

  const std::int64_t wanted_, max_probes_;
  const double probe_cost_, rerank_cost_;  // in about nanoseconds; only the ratio of the costs matters
  std::vector<std::int64_t> n_probes_, n_candidates_;
  // For each sample point, the recall for each pair (n_probes, n_candidates).
  std::vector<std::vector<float>> shares_;
};

}  // namespace agglo
