// The candidates for the k closest of every point, while a search goes on.
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

// A candidate with its closeness; the order is that of the result.
struct Candidate {
  double closeness;
  std::int32_t index;

  bool operator<(const Candidate& other) const {
    return closeness != other.closeness ? closeness > other.closeness : index < other.index;
  }
};

// By how much the float32 product of two images may err, for one of the points: add that of the other.
//
// A float32 product of d terms, summed in any order, errs by at most gamma |x||y| <= gamma (|x|^2 + |y|^2)
// / 2. Other roundings, of images, offsets, bars and sums of these, amount to less than 24 of a square.
inline double slack_of(double square, std::int64_t d) {
  const double unit = std::numeric_limits<float>::epsilon() / 2, terms = static_cast<double>(d + 1);
  const double gamma = terms * unit / (1 - terms * unit);
  return (gamma / 2 + 24 * unit) * square + static_cast<double>(d) * std::numeric_limits<float>::min();
}
template <class T>
double slack_of(const Space<T>& space, std::int64_t i) {
  return slack_of(space.square(i), space.d());
}

// Lists for the points `ids`, which are known by their place in it.
//
// Float32 errs; slack(i) + slack(j) bounds by how much, for the closeness of i and j. A list holds every pair
// offered whose upper bound reaches the list's bar, a number that the closeness of k candidates surely
// reaches. So none of the first k is ever lost, and exact closeness is needed only for the few candidates
// left in the end, or when a list is full of near ties.
template <class T>
class Lists {
 public:
  Lists(const Space<T>& space, std::span<const std::int32_t> ids, std::int64_t k)
      : space_(space), ids_(ids), k_(k), room_((k + std::max<std::int64_t>(16, k / 4) + 15) / 16 * 16) {
    const std::int64_t n = static_cast<std::int64_t>(ids.size());
    slack_.resize(n);
    offset_.resize(n);
    for (std::int64_t p = 0; p < n; ++p) {
      const double slack = slack_of(space, ids[p]);
      slack_[p] = static_cast<float>(slack);
      offset_[p] = static_cast<float>(space.offset(ids[p]) - slack);
    }
    bar_.assign(n, -std::numeric_limits<float>::infinity());
    reach_ = bar_;
    size_.assign(n, 0);
    others_.resize(n * room_);
    uppers_.resize(n * room_);
  }

  // A pair matters to p only if the product of its images, in float32, is at least reach(p) + offset(q),
  // which is also to say that the upper bound of its closeness, product - offset(p) - offset(q), is at least
  // bar(p).
  const float* offset() const { return offset_.data(); }
  const float* reach() const { return reach_.data(); }
  const float* bar() const { return bar_.data(); }
  const float* slack() const { return slack_.data(); }

  // Offers to p must not meet each other.
  void offer(std::int64_t p, std::int64_t q, float upper) {
    if (upper < bar_[p]) return;
    const std::int64_t slot = p * room_ + size_[p]++;
    others_[slot] = static_cast<std::int32_t>(q);
    uppers_[slot] = upper;
    if (size_[p] == room_) tighten(p);
  }

  // The same for many candidates at once, if nothing has been offered yet: those of the row's products that
  // may be among its k closest. A place that is `own` is passed over.
  void offer_first(std::int64_t p, std::span<const std::int32_t> others, const float* products) {
    thread_local std::vector<float> uppers, lowers;
    const std::size_t m = others.size();
    uppers.resize(m);
    lowers.resize(m);
    for (std::size_t s = 0; s < m; ++s) {
      const std::int32_t q = others[s];
      const bool own = q == p;
      uppers[s] = own ? -std::numeric_limits<float>::infinity() : (products[s] - offset_[p]) - offset_[q];
      lowers[s] = own ? std::numeric_limits<float>::lowest() : uppers[s] - 2 * (slack_[p] + slack_[q]);
    }
    if (static_cast<std::int64_t>(m) > k_) raise(p, reached_by(k_, lowers.data(), m));
    for (std::size_t s = 0; s < m; ++s)
      if (uppers[s] >= bar_[p] && others[s] != p) offer(p, others[s], uppers[s]);
  }

  // Keeps the k closest of p alone, if there are so many, and returns them by their places, in no order.
  std::span<const std::int32_t> settle(std::int64_t p) {
    if (size_[p] > k_) drop(p);
    if (size_[p] > k_) keep_closest(p);
    return {others_.data() + p * room_, static_cast<std::size_t>(size_[p])};
  }

  // The k closest of p, closest first, by their indices among all points. Valid until the thread's next call.
  std::span<const Candidate> best(std::int64_t p) {
    drop(p);
    return scored(p);
  }

 private:
  std::span<Candidate> scored(std::int64_t p) {
    thread_local std::vector<Candidate> list;
    list.clear();
    for (std::int64_t s = p * room_; s < p * room_ + size_[p]; ++s) {
      if (s + 2 < p * room_ + size_[p]) prefetch(space_.points().row(ids_[others_[s + 2]]));
      list.push_back({space_.closeness(ids_[p], ids_[others_[s]]), ids_[others_[s]]});
    }
    std::partial_sort(list.begin(), list.begin() + k_, list.end());
    return {list.data(), static_cast<std::size_t>(k_)};
  }

  // Raises the bar to what k candidates surely reach and drops those that surely do not.
  void drop(std::int64_t p) {
    thread_local std::vector<float> lowers;
    lowers.clear();
    for (std::int64_t s = p * room_; s < p * room_ + size_[p]; ++s)
      lowers.push_back(uppers_[s] - 2 * (slack_[p] + slack_[others_[s]]));
    raise(p, reached_by(k_, lowers.data(), size_[p]));
    std::int64_t kept = p * room_;
    for (std::int64_t s = p * room_; s < p * room_ + size_[p]; ++s) {
      if (uppers_[s] < bar_[p]) continue;
      others_[kept] = others_[s];
      uppers_[kept++] = uppers_[s];
    }
    size_[p] = static_cast<std::int32_t>(kept - p * room_);
  }

  // Makes room in a full list.
  void tighten(std::int64_t p) {
    drop(p);
    // Otherwise there are too many near ties for bounds to tell apart.
    if (size_[p] > (k_ + room_) / 2) keep_closest(p);
  }

  void keep_closest(std::int64_t p) {
    thread_local std::vector<std::pair<Candidate, std::int32_t>> list;
    list.clear();
    for (std::int64_t s = p * room_; s < p * room_ + size_[p]; ++s)
      list.push_back({{space_.closeness(ids_[p], ids_[others_[s]]), ids_[others_[s]]}, others_[s]});
    std::nth_element(list.begin(), list.begin() + (k_ - 1), list.end());
    for (std::int64_t s = 0; s < k_; ++s) {
      others_[p * room_ + s] = list[s].second;
      uppers_[p * room_ + s] =
          static_cast<float>(list[s].first.closeness) + (slack_[p] + slack_[list[s].second]);
    }
    size_[p] = static_cast<std::int32_t>(k_);
    const double last = list[k_ - 1].first.closeness;
    const float bar = static_cast<float>(last);
    raise(p, bar > last ? std::nextafter(bar, -std::numeric_limits<float>::infinity()) : bar);
  }

  void raise(std::int64_t p, float bar) {
    bar_[p] = std::max(bar_[p], bar);
    reach_[p] = bar_[p] + offset_[p];
  }

  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
  const std::int64_t k_, room_;
  std::vector<float> slack_, offset_, reach_, bar_;
  std::vector<std::int32_t> size_, others_;
  std::vector<float> uppers_;
};

}  // namespace agglo
