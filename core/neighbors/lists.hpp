// Candidate lists: for every point, the candidates for its k nearest neighbours during an exact search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "points/space.hpp"
#include "simd/dot.hpp"

namespace agglo {

// A candidate with its exact similarity. By operator<, the candidate with the larger similarity comes first.
// If two similarities are equal, the candidate with the smaller index comes first.
struct Candidate {
  double similarity;
  std::int32_t index;

  bool operator<(const Candidate& other) const {
    return similarity != other.similarity ? similarity > other.similarity : index < other.index;
  }
};

// Return the slack of a row, given the squared length of the row.
// The error of the float32 similarity of two rows is at most the sum of their slacks.
//
// Let x and y be two rows of d numbers.
// The error of their float32 dot product is at most gamma |x||y|, for any order of the sum.
// gamma |x||y| is at most gamma (|x|^2 + |y|^2) / 2.
// Rows, offsets, thresholds and their sums are rounded, too.
// The error of all these roundings is less than 24 times the rounding error of a squared length.
inline double float32_slack(double square, std::int64_t d) {
  const double unit = std::numeric_limits<float>::epsilon() / 2, terms = static_cast<double>(d + 1);
  const double gamma = terms * unit / (1 - terms * unit);
  return (gamma / 2 + 24 * unit) * square + static_cast<double>(d) * std::numeric_limits<float>::min();
}
inline double float32_slack(const Space& space, std::int64_t i) {
  return float32_slack(space.square(i), space.d());
}

// Return the largest float32 number that is at most x.
inline float round_down(double x) {
  const float rounded = static_cast<float>(x);
  return rounded > x ? std::nextafter(rounded, -std::numeric_limits<float>::infinity()) : rounded;
}

// The candidate lists of the points `ids`. A point is addressed by its position in `ids`.
//
// Each candidate is offered with an upper bound of its similarity, in float32.
// Each list has a threshold. The similarities of at least k candidates of the list reach the threshold.
// A list keeps every candidate whose upper bound reaches the threshold.
// So a list never loses one of the k nearest points.
// Exact similarities are computed only for the few final candidates, or if a list is full of near ties.
class CandidateLists {
 public:
  CandidateLists(const Space& space, std::span<const std::int32_t> ids, std::int64_t k)
      : space_(space), ids_(ids), k_(k), capacity_((k + std::max<std::int64_t>(16, k / 4) + 15) / 16 * 16) {
    const std::int64_t n = static_cast<std::int64_t>(ids.size());
    slack_.resize(n);
    offset_.resize(n);
    for (std::int64_t p = 0; p < n; ++p) {
      const double slack = float32_slack(space, ids[p]);
      slack_[p] = static_cast<float>(slack);
      offset_[p] = static_cast<float>(space.offset(ids[p]) - slack);
    }
    threshold_.assign(n, -std::numeric_limits<float>::infinity());
    cutoff_ = threshold_;
    size_.assign(n, 0);
    others_.resize(n * capacity_);
    upper_bounds_.resize(n * capacity_);
  }

  // The upper bound of the similarity of the points at positions p and q is product - offset(p) - offset(q).
  // Here, `product` is the float32 dot product of the normalized rows of p and q.
  // The upper bound reaches threshold(p) if product >= cutoff(p) + offset(q).
  const float* offset() const { return offset_.data(); }
  const float* cutoff() const { return cutoff_.data(); }
  const float* threshold() const { return threshold_.data(); }
  const float* slack() const { return slack_.data(); }

  // Offer candidate q to the list of p. Two threads must not call offer() for the same p at once.
  void offer(std::int64_t p, std::int64_t q, float upper_bound) {
    if (upper_bound < threshold_[p]) return;
    const std::int64_t slot = p * capacity_ + size_[p]++;
    others_[slot] = static_cast<std::int32_t>(q);
    upper_bounds_[slot] = upper_bound;
    if (size_[p] == capacity_) shrink(p);
  }

  // Return the k nearest points of the point at position p, nearest first, with their indices among all
  // points. The result is valid until the next call in the same thread.
  std::span<const Candidate> best(std::int64_t p) {
    prune(p);
    return score_and_sort(p);
  }

 private:
  std::span<Candidate> score_and_sort(std::int64_t p) {
    thread_local std::vector<Candidate> list;
    list.clear();
    for (std::int64_t s = p * capacity_; s < p * capacity_ + size_[p]; ++s) {
      if (s + 2 < p * capacity_ + size_[p]) space_.prefetch_row(ids_[others_[s + 2]]);
      list.push_back({space_.similarity(ids_[p], ids_[others_[s]]), ids_[others_[s]]});
    }
    std::partial_sort(list.begin(), list.begin() + k_, list.end());
    return {list.data(), static_cast<std::size_t>(k_)};
  }

  // Raises the threshold of a list to a similarity that k candidates surely reach.
  // Removes the candidates whose upper bounds are below the new threshold.
  void prune(std::int64_t p) {
    thread_local std::vector<float> lower_bounds;
    lower_bounds.clear();
    for (std::int64_t s = p * capacity_; s < p * capacity_ + size_[p]; ++s)
      lower_bounds.push_back(upper_bounds_[s] - 2 * (slack_[p] + slack_[others_[s]]));
    raise_threshold(p, top_k_threshold(k_, lower_bounds.data(), size_[p]));
    std::int64_t end = p * capacity_;
    for (std::int64_t s = p * capacity_; s < p * capacity_ + size_[p]; ++s) {
      if (upper_bounds_[s] < threshold_[p]) continue;
      others_[end] = others_[s];
      upper_bounds_[end++] = upper_bounds_[s];
    }
    size_[p] = static_cast<std::int32_t>(end - p * capacity_);
  }

  // Makes room in a full list.
  void shrink(std::int64_t p) {
    prune(p);
    // If many candidates remain, the upper bounds are too imprecise to separate near ties.
    if (size_[p] > (k_ + capacity_) / 2) keep_closest(p);
  }

  // Keeps only the k nearest candidates of a list, ranked by exact similarity.
  void keep_closest(std::int64_t p) {
    thread_local std::vector<std::pair<Candidate, std::int32_t>> list;
    list.clear();
    for (std::int64_t s = p * capacity_; s < p * capacity_ + size_[p]; ++s)
      list.push_back({{space_.similarity(ids_[p], ids_[others_[s]]), ids_[others_[s]]}, others_[s]});
    std::nth_element(list.begin(), list.begin() + (k_ - 1), list.end());
    for (std::int64_t s = 0; s < k_; ++s) {
      others_[p * capacity_ + s] = list[s].second;
      upper_bounds_[p * capacity_ + s] =
          static_cast<float>(list[s].first.similarity) + (slack_[p] + slack_[list[s].second]);
    }
    size_[p] = static_cast<std::int32_t>(k_);
    raise_threshold(p, round_down(list[k_ - 1].first.similarity));
  }

  void raise_threshold(std::int64_t p, float threshold) {
    threshold_[p] = std::max(threshold_[p], threshold);
    cutoff_[p] = threshold_[p] + offset_[p];
  }

  const Space& space_;
  const std::span<const std::int32_t> ids_;
  const std::int64_t k_, capacity_;
  std::vector<float> slack_, offset_, cutoff_, threshold_;
  std::vector<std::int32_t> size_, others_;
  std::vector<float> upper_bounds_;
};

}  // namespace agglo
