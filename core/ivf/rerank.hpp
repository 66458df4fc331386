// Exact re-ranking of the candidates that a scan of inverted lists found.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/topk.hpp"
#include "neighbors/lists.hpp"
#include "points/space.hpp"
#include "simd/dot.hpp"

namespace agglo {

// Ranks candidates by exact similarity.
// If there are many candidates, float32 similarities and their error bound first exclude distant candidates.
class Reranker {
 public:
  Reranker(const Space& space, std::int64_t k) : space_(space), k_(k) {}

  void clear() { ids_.clear(); }
  void add(std::int32_t id) { ids_.push_back(id); }

  // Return the k nearest of the added candidates, nearest first. At least k candidates must have been added.
  // `subject` is a point or a Query, and `square` is the squared length of its normalized row.
  // If `quick` is true, candidates may be pruned by float32 similarities.
  template <class Subject>
  std::span<const Candidate> rank(const Subject& subject, double square, bool quick) {
    if (quick && static_cast<std::int64_t>(ids_.size()) > k_ + kSpare) prune(subject, square);
    candidates_.clear();
    for (std::size_t s = 0; s < ids_.size(); ++s) {
      prefetch_row(s + 2);
      candidates_.push_back({space_.similarity(subject, ids_[s]), ids_[s]});
    }
    keep_first(candidates_, k_);
    return candidates_;
  }

 private:
  static constexpr std::int64_t kSpare = 6;  // with at most k + kSpare candidates, pruning saves no time

  template <class Subject>
  void prune(const Subject& subject, double square) {
    upper_bounds_.clear();
    lower_bounds_.clear();
    const double own = float32_slack(square, space_.d());
    for (std::size_t s = 0; s < ids_.size(); ++s) {
      prefetch_row(s + 2);
      const double similarity = space_.quick_similarity(subject, ids_[s]);
      const double slack = own + float32_slack(space_, ids_[s]) + std::abs(similarity) * 1e-6;
      upper_bounds_.push_back(static_cast<float>(similarity + slack));
      lower_bounds_.push_back(static_cast<float>(similarity - slack));
    }
    const float threshold =
        top_k_threshold(k_, lower_bounds_.data(), static_cast<std::int64_t>(lower_bounds_.size()));
    std::size_t kept = 0;
    for (std::size_t s = 0; s < ids_.size(); ++s)
      if (upper_bounds_[s] >= threshold) ids_[kept++] = ids_[s];
    ids_.resize(kept);
  }

  void prefetch_row(std::size_t s) const {
    if (s < ids_.size()) space_.prefetch_row(ids_[s]);
  }

  const Space& space_;
  const std::int64_t k_;
  std::vector<std::int32_t> ids_;
  std::vector<Candidate> candidates_;
  std::vector<float> upper_bounds_, lower_bounds_;
};

}  // namespace agglo
