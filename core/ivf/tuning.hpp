// How much effort a search by cells is to spend, by what it takes for a sample of points.
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
#include "neighbors/true_neighbors.hpp"

namespace agglo {

class EffortPlan {
 public:
  // `wanted` neighbours of each of n points, by visits to cells of about `size` points in `coded` bytes each.
  EffortPlan(std::int64_t n, std::int64_t wanted, std::int64_t size, std::int64_t coded, std::int64_t d)
      : wanted_(wanted),
        most_(std::max(kSeen, n / 3) / size + 1),
        visit_(static_cast<double>(size) * (0.25 + 0.006 * static_cast<double>(coded)) +
               0.5 * static_cast<double>(coded)),
        compare_(25 + 0.12 * static_cast<double>(d)) {
    // The point itself is a candidate, too.
    for (std::int64_t kept = wanted + 1; kept <= kMost * (wanted + 1);
         kept += std::max<std::int64_t>(1, kept / 12))
      kept_.push_back(kept);
  }

  // Finds out how many true neighbours the first points of a sample find, for every effort.
  template <class T>
  void learn(const Truth<T>& truth, const Partition& cells, const CodedCells& coded, std::int64_t sample,
             std::vector<Visitor>& visitors, ThreadPool& pool) {
    const std::int64_t most = std::min(most_, static_cast<std::int64_t>(cells.near(0).size()));
    for (std::int64_t f = 1; f < most; f += std::max<std::int64_t>(1, f / 6)) visits_.push_back(f);
    visits_.push_back(most);
    shares_.assign(sample, {});
    pool.run(sample, [&](std::int64_t s, int worker) {
      Visitor::Scores scores;
      visitors[worker].score(truth.places()[s], most, scores);
      struct Seen {
        float score;
        std::int32_t slot;
        int right = -1;  // not yet known
      };
      std::vector<Seen> best;
      std::int64_t rank = 0;
      for (const std::int64_t visits : visits_) {
        const float bar = best.size() < static_cast<std::size_t>(kept_.back())
                              ? std::numeric_limits<float>::lowest()
                              : best.back().score;
        for (; rank < visits; ++rank)
          for (std::int64_t at = scores.begins[rank]; at < scores.begins[rank + 1]; ++at)
            if (scores.scores[at] >= bar)
              best.push_back({scores.scores[at], static_cast<std::int32_t>(coded.begin(scores.order[rank]) +
                                                                           at - scores.begins[rank])});
        std::stable_sort(best.begin(), best.end(),
                         [](const Seen& a, const Seen& b) { return a.score > b.score; });
        if (best.size() > static_cast<std::size_t>(kept_.back())) best.resize(kept_.back());
        std::int64_t hits = 0;
        std::size_t seen = 0;
        for (const std::int64_t kept : kept_) {
          for (; seen < best.size() && static_cast<std::int64_t>(seen) < kept; ++seen) {
            if (best[seen].right < 0) best[seen].right = truth.right(s, coded.place(best[seen].slot));
            hits += best[seen].right;
          }
          shares_[s].push_back(static_cast<float>(std::min(hits, wanted_)) / static_cast<float>(wanted_));
        }
      }
    });
  }

  // The cheapest effort with which the sample reaches a recall that is higher than the wish by some of its
  // own error. If none does, `enough` is false, and it is the cheapest that comes as close as there is use
  // in.
  struct Choice {
    std::int64_t visits, kept;
    bool enough;
  };
  Choice cheapest(double recall) const {
    for (const double errors : {1.5, 0.75, 0.0})  // to be safe, if that is possible
      if (const auto best = cheapest(recall, errors)) return {best->visits, best->kept, true};
    double highest = 0;
    for (std::size_t effort = 0; effort < visits_.size() * kept_.size(); ++effort)
      highest = std::max(highest, shares_on(effort).first);
    const auto best = cheapest(highest - kLittle, 0);
    return {best->visits, best->kept, false};
  }

  // What the sample reaches with a choice.
  Recall reached(const Choice& choice) const {
    const auto f = std::find(visits_.begin(), visits_.end(), choice.visits) - visits_.begin(),
               c = std::find(kept_.begin(), kept_.end(), choice.kept) - kept_.begin();
    std::vector<double> shares;
    for (const auto& own : shares_) shares.push_back(own[f * kept_.size() + c]);
    return recall_of(shares, wanted_);
  }

 private:
  static constexpr double kLittle = 0.002;      // of recall, which is not worth all the effort there is
  static constexpr std::int64_t kSeen = 32768;  // points that one may see on its visits, or a third of all
  static constexpr std::int64_t kMost = 8;      // times as many candidates as neighbours, at most

  std::optional<Choice> cheapest(double recall, double errors) const {
    std::optional<Choice> best;
    double cost = 0;
    for (std::size_t f = 0; f < visits_.size(); ++f)
      for (std::size_t c = 0; c < kept_.size(); ++c) {
        const double price =
            static_cast<double>(visits_[f]) * visit_ + static_cast<double>(kept_[c]) * compare_;
        if (best && price >= cost) continue;
        const auto [mean, error] = shares_on(f * kept_.size() + c);
        if (mean < recall + std::min(errors * error, 0.6 * (1 - recall))) continue;
        best = {visits_[f], kept_[c], true};
        cost = price;
      }
    return best;
  }

  // The mean of the sample's shares, and its standard error.
  std::pair<double, double> shares_on(std::size_t effort) const {
    double sum = 0, squares = 0;
    for (const auto& shares : shares_) {
      sum += shares[effort];
      squares += static_cast<double>(shares[effort]) * shares[effort];
    }
    const double m = static_cast<double>(shares_.size()), mean = sum / m;
    const double error = std::sqrt(std::max(0.0, squares / m - mean * mean) / std::max(m - 1, 1.0));
    return {mean, error};
  }

  const std::int64_t wanted_, most_;  // neighbours; visits, at most
  const double visit_, compare_;      // nanoseconds of a visit and of an exact comparison; their ratio counts
  std::vector<std::int64_t> visits_, kept_;
  std::vector<std::vector<float>> shares_;  // of each point of the sample, by visits and then by candidates
};

}  // namespace agglo
