// Tuning of an IVF search: choose n_probes and n_candidates by the recall of a sample of points.
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

// Chooses the cheapest pair (n_probes, n_candidates) that reaches a recall.
class ProbeTuner {
 public:
  // Tune a search for `wanted` neighbours of each of n points with d columns.
  // Inverted lists have about `size` points, and codes have `coded` bytes.
  ProbeTuner(std::int64_t n, std::int64_t wanted, std::int64_t size, std::int64_t coded, std::int64_t d)
      : wanted_(wanted),
        max_probes_(std::max(kSeen, n / 3) / size + 1),
        probe_cost_(static_cast<double>(size) * (0.25 + 0.006 * static_cast<double>(coded)) +
                    0.5 * static_cast<double>(coded)),
        rerank_cost_(25 + 0.12 * static_cast<double>(d)) {
    // One candidate more than neighbours, because the point itself is a candidate.
    for (std::int64_t n_candidates = wanted + 1; n_candidates <= kMaxCandidates * (wanted + 1);
         n_candidates += std::max<std::int64_t>(1, n_candidates / 12))
      n_candidates_.push_back(n_candidates);
  }

  // Measure the recall of the first `sample` points in a sample, for every pair (n_probes, n_candidates).
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
        int is_true = -1;  // -1: not computed yet
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

  // Return the cheapest pair with which the sample reaches the recall plus a margin for sampling error.
  // If no pair does, the margin is reduced. If no pair reaches the recall itself, `is_enough` is false.
  // The choice is then the cheapest pair whose recall is close to the highest recall.
  struct Choice {
    std::int64_t n_probes, n_candidates;
    bool is_enough;
  };
  Choice choose(double recall) const {
    for (const double errors : {1.5, 0.75, 0.0})  // margins in standard errors
      if (const auto best = choose(recall, errors)) return {best->n_probes, best->n_candidates, true};
    double highest = 0;
    for (std::size_t pair = 0; pair < n_probes_.size() * n_candidates_.size(); ++pair)
      highest = std::max(highest, mean_share(pair).first);
    const auto best = choose(highest - kLittle, 0);
    return {best->n_probes, best->n_candidates, false};
  }

  // Return the recall of the sample with the given choice.
  Recall sample_recall(const Choice& choice) const {
    const auto f = std::find(n_probes_.begin(), n_probes_.end(), choice.n_probes) - n_probes_.begin(),
               c = std::find(n_candidates_.begin(), n_candidates_.end(), choice.n_candidates) -
                   n_candidates_.begin();
    std::vector<double> shares;
    for (const auto& own : shares_) shares.push_back(own[f * n_candidates_.size() + c]);
    return estimate_recall(shares, wanted_);
  }

 private:
  static constexpr double kLittle = 0.002;  // recalls that differ by at most this count as equal
  static constexpr std::int64_t kSeen =
      32768;  // a point may scan lists with this number of points, or a third of all points if that is more
  static constexpr std::int64_t kMaxCandidates = 8;  // maximum number of candidates per neighbour

  std::optional<Choice> choose(double recall, double errors) const {
    std::optional<Choice> best;
    double lowest = 0;
    for (std::size_t f = 0; f < n_probes_.size(); ++f)
      for (std::size_t c = 0; c < n_candidates_.size(); ++c) {
        const double cost = static_cast<double>(n_probes_[f]) * probe_cost_ +
                            static_cast<double>(n_candidates_[c]) * rerank_cost_;
        if (best && cost >= lowest) continue;
        const auto [mean, error] = mean_share(f * n_candidates_.size() + c);
        if (mean < recall + std::min(errors * error, 0.6 * (1 - recall))) continue;
        best = {n_probes_[f], n_candidates_[c], true};
        lowest = cost;
      }
    return best;
  }

  // Returns the mean recall of the sample for a pair, and the standard error of this mean.
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
  const double probe_cost_, rerank_cost_;  // approximate nanoseconds; only their ratio matters
  std::vector<std::int64_t> n_probes_, n_candidates_;
  std::vector<std::vector<float>> shares_;  // recall of each sample point, for each pair
};

}  // namespace agglo
