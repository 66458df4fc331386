// The linkages: what is kept of the edges between two clusters, and how close it makes them.
//
// Inside the core larger is closer: a distance is used with its sign turned. A linkage is a policy with
//   Stat                  what is kept of the edges between two clusters
//   of(weight)            the Stat of one edge; combine(a, b) adds b's edges to a
//   of(weight, pairs)     averages: the Stat of one edge that counts as so many, by the weights of its ends
//   of_many(edges)        the Stat of edges that have been combined already
//   value(stat, a, b)     the linkage of clusters of sizes a and b
//   floor                 what clusters without any edge count as inside a larger pair; -inf if nothing
// and, because all of them are reducible, two bounds that let the rounds look at few lists:
//   Blend                 an upper bound on the union's linkage to any one cluster, from its parts' bounds
//   grown(...)            an upper bound on the linkage to a neighbour that has since grown
//   growth                how a linkage changes if one of the clusters grows and gets no edges by it
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "base/int384.hpp"
#include "neighbors/graph.hpp"

namespace agglo {

// Edges between two clusters: their number, the sum of their weights as FixedPoint has it, in limbs of 64
// bits, the lowest first, and the weight of the closest (single linkage) or the farthest one (complete
// linkage).
struct Edges {
  std::int64_t count;
  std::span<const std::int64_t> sum;
  float weight;
};

constexpr int kFloatBits = 24;  // significant bits of a float

// It stays, falls at most once, or changes every time.
enum class Growth { none, once, gradual };

constexpr double kNone = -std::numeric_limits<double>::infinity();

// A bound where a union may be as close as its closest part.
struct Closest {
  double most = kNone;
  void add(double bound, double, double) { most = std::max(most, bound); }
  double of(double) const { return most; }
};

// A bound where every part has its say in proportion to its size.
struct Weighted {
  double sum = 0;
  void add(double bound, double size, double floor) { sum += std::max(bound, floor) * size; }
  double of(double size) const { return sum / size; }
};

// Weights are multiples of 2^-shift, or are rounded to such, and are summed as integers: a sum then depends
// neither on its order nor on how it was grouped, which is what makes all engines agree. The caller chooses a
// type of integers and a shift for which no sum overflows and no weight is rounded.
template <class Sum>
class FixedPoint {
 public:
  static constexpr std::size_t kLimbs = sizeof(Sum) / sizeof(std::int64_t);

  FixedPoint(Kind kind, int shift)
      : up_(std::ldexp(kind == Kind::similarity ? 1.0 : -1.0, shift)), down_(std::ldexp(1.0, -shift)) {}
  Sum of(double weight) const {
    if constexpr (kLimbs == 1)
      return std::llrint(weight * up_);
    else
      return static_cast<Sum>(std::rint(weight * up_));
  }
  static Sum of_limbs(std::span<const std::int64_t> limbs) {
    if constexpr (kLimbs == 1)
      return limbs[0];
    else if constexpr (kLimbs == 2)
      return static_cast<Sum>(limbs[1]) << 64 | static_cast<std::uint64_t>(limbs[0]);
    else
      return Sum(limbs);
  }
  double value(Sum sum) const { return static_cast<double>(sum) * down_; }

 private:
  double up_, down_;
};

// The mean over all pairs, one without an edge counting as 0.
template <class Sum>
class AverageLinkage {
 public:
  using Stat = Sum;

  AverageLinkage(Kind kind, int shift) : grid_(kind, shift) {}

  Stat of(float weight) const { return grid_.of(weight); }
  Stat of(float weight, double pairs) const { return grid_.of(weight * pairs); }
  static Stat of_many(const Edges& edges) { return FixedPoint<Sum>::of_limbs(edges.sum); }
  static void combine(Stat& a, const Stat& b) { a += b; }
  double value(const Stat& sum, double a, double b) const { return grid_.value(sum) / (a * b); }

  using Blend = Weighted;
  static double grown(double was, double others, double old_size, double size) {
    return (was * old_size + others * (size - old_size)) / size;
  }
  static constexpr bool steadfast = false;
  static constexpr Growth growth = Growth::gradual;
  static constexpr double floor = 0;

 private:
  FixedPoint<Stat> grid_;
};

// The mean over all pairs, one without an edge counting as `missing`; Present: over those with an edge only.
// Pairs are counted in steps of 2^-count_shift, where points have weights.
template <class Sum, bool Present>
class CountedAverageLinkage {
 public:
  struct Stat {
    Sum sum;
    std::int64_t count;
    auto operator<=>(const Stat&) const = default;
  };

  CountedAverageLinkage(Kind kind, double missing, int shift, int count_shift = 0)
      : floor(Present ? kNone : (kind == Kind::similarity ? missing : -missing)),
        grid_(kind, shift),
        counts_(Kind::similarity, count_shift) {}

  Stat of(float weight) const { return {grid_.of(weight), 1}; }
  Stat of(float weight, double pairs) const { return {grid_.of(weight * pairs), counts_.of(pairs)}; }
  static Stat of_many(const Edges& edges) { return {FixedPoint<Sum>::of_limbs(edges.sum), edges.count}; }
  static void combine(Stat& a, const Stat& b) { a.sum += b.sum, a.count += b.count; }
  double value(const Stat& stat, double a, double b) const {
    const double count = counts_.value(stat.count);
    if constexpr (Present) return grid_.value(stat.sum) / count;
    return (grid_.value(stat.sum) + floor * (a * b - count)) / (a * b);
  }

  using Blend = std::conditional_t<Present, Closest, Weighted>;
  static double grown(double was, double others, double old_size, double size) {
    return Present ? was : AverageLinkage<Sum>::grown(was, others, old_size, size);
  }
  static constexpr bool steadfast = false;
  static constexpr Growth growth = Present ? Growth::none : Growth::gradual;
  const double floor;

 private:
  FixedPoint<Sum> grid_;
  FixedPoint<std::int64_t> counts_;
};

// Linkages that the weights of points matter to.
template <class Linkage>
concept Weighing = requires(const Linkage& linkage) { linkage.of(1.0f, 1.0); };

// The closest pair that has an edge. A neighbour that grows stays as close as it was: it is steadfast.
class SingleLinkage {
 public:
  using Stat = float;

  explicit SingleLinkage(Kind kind) : sign_(kind == Kind::similarity ? 1.0f : -1.0f) {}

  Stat of(float weight) const { return sign_ * weight; }
  Stat of_many(const Edges& edges) const { return of(edges.weight); }
  static void combine(Stat& a, Stat b) { a = std::max(a, b); }
  static double value(Stat stat, double, double) { return stat; }

  using Blend = Closest;
  static double grown(double was, double, double, double) { return was; }
  static constexpr bool steadfast = true;
  static constexpr Growth growth = Growth::none;
  static constexpr double floor = kNone;

 private:
  float sign_;
};

// The farthest pair that has an edge.
class PresentCompleteLinkage : public SingleLinkage {
 public:
  using SingleLinkage::SingleLinkage;
  static void combine(Stat& a, Stat b) { a = std::min(a, b); }
  static constexpr bool steadfast = false;
};

// The farthest pair, one without an edge counting as `missing`.
class CompleteLinkage {
 public:
  struct Stat {
    std::int64_t count;
    float farthest;
  };

  CompleteLinkage(Kind kind, double missing)
      : sign_(kind == Kind::similarity ? 1.0f : -1.0f), floor(sign_ * missing) {}

  Stat of(float weight) const { return {1, sign_ * weight}; }
  Stat of_many(const Edges& edges) const { return {edges.count, sign_ * edges.weight}; }
  static void combine(Stat& a, Stat b) { a.count += b.count, a.farthest = std::min(a.farthest, b.farthest); }
  double value(Stat stat, double a, double b) const {
    const double farthest = stat.farthest;
    return static_cast<double>(stat.count) == a * b ? farthest : std::min(farthest, floor);
  }

  // A union is as far as its farthest part.
  struct Blend {
    double least = std::numeric_limits<double>::infinity();
    void add(double bound, double, double floor) { least = std::min(least, std::max(bound, floor)); }
    double of(double) const { return least; }
  };
  static double grown(double was, double, double, double) { return was; }
  static constexpr bool steadfast = false;
  static constexpr Growth growth = Growth::once;

 private:
  float sign_;

 public:
  const double floor;
};

}  // namespace agglo
