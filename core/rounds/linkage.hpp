// The linkages of edge weights: average, single and complete, as compile-time policies.
//
// Inside the core larger values are closer: distances have their sign flipped. A linkage is a class with
//   Stat                         the statistics of the edges between two clusters
//   stat(weight)                 the Stat of one edge
//   stat(weight, pairs)          averages only: the Stat of one edge that counts as `pairs` edges
//   stat(edges)                  the Stat of edges that are combined already
//   combine(a, b)                adds the edges of b to a
//   value(stat, a, b)            the linkage of clusters of sizes a and b
//   floor                        the value of a pair of clusters without edges inside a larger pair;
//                                -inf if such pairs take no part
// All linkages are reducible. So each has upper bounds, which save the rounds from reading most lists:
//   UnionBound                   bounds the linkage of a union to any other cluster, from bounds of its parts
//   bound_after_growth(...)      bounds the linkage to a neighbour that has grown
//   kGrowthInvariant             whether the linkage to a neighbour stays the same if the neighbour grows
//   kGrowth                      how the linkage changes if one cluster grows and gets no edges by it
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

// The combined edges between two clusters.
struct CombinedEdges {
  std::int64_t count;
  std::span<const std::int64_t> sum;  // of the weights, as FixedPoint limbs, the lowest first
  float weight;                       // of the closest edge (single linkage) or the farthest (complete)
};

constexpr int kFloatBits = 24;  // significant bits of a float

// How often a linkage falls while a cluster grows without new edges: never, at most once, or every time.
enum class Growth { none, once, gradual };

constexpr double kNoLinkage = -std::numeric_limits<double>::infinity();

// The bound of a union that may be as close as its closest part.
struct MaxBound {
  double max = kNoLinkage;
  void add(double bound, double, double) { max = std::max(max, bound); }
  double get(double) const { return max; }
};

// The bound of a union that is no farther than its farthest part.
struct MinBound {
  double min = std::numeric_limits<double>::infinity();
  void add(double bound, double, double floor) { min = std::min(min, std::max(bound, floor)); }
  double get(double) const { return min; }
};

// The bound of a union to which every part contributes in proportion to its size.
struct MeanBound {
  double sum = 0;
  void add(double bound, double size, double floor) { sum += std::max(bound, floor) * size; }
  double get(double size) const { return sum / size; }
};

// Fixed-point numbers: multiples of 2^-shift, stored as integers of type Sum.
//
// Sums of integers do not depend on their order or grouping, so all engines give the same sums. The caller
// chooses a type and a shift for which no sum overflows and no weight is rounded.
template <class Sum>
class FixedPoint {
 public:
  static constexpr std::size_t kLimbs = sizeof(Sum) / sizeof(std::int64_t);

  FixedPoint(Kind kind, int shift)
      : scale_(std::ldexp(kind == Kind::similarity ? 1.0 : -1.0, shift)), step_(std::ldexp(1.0, -shift)) {}
  Sum from_double(double weight) const {
    if constexpr (kLimbs == 1)
      return std::llrint(weight * scale_);
    else
      return static_cast<Sum>(std::rint(weight * scale_));
  }
  static Sum from_limbs(std::span<const std::int64_t> limbs) {
    if constexpr (kLimbs == 1)
      return limbs[0];
    else if constexpr (kLimbs == 2)
      return static_cast<Sum>(limbs[1]) << 64 | static_cast<std::uint64_t>(limbs[0]);
    else
      return Sum(limbs);
  }
  double to_double(Sum sum) const { return static_cast<double>(sum) * step_; }

 private:
  double scale_, step_;  // scale_ has the sign that makes larger closer
};

// Average linkage: the mean over all pairs. A pair without an edge counts as 0.
template <class Sum>
class AverageLinkage {
 public:
  using Stat = Sum;

  AverageLinkage(Kind kind, int shift) : fixed_point_(kind, shift) {}

  Stat stat(float weight) const { return fixed_point_.from_double(weight); }
  Stat stat(float weight, double pairs) const { return fixed_point_.from_double(weight * pairs); }
  static Stat stat(const CombinedEdges& edges) { return FixedPoint<Sum>::from_limbs(edges.sum); }
  static void combine(Stat& a, const Stat& b) { a += b; }
  double value(const Stat& sum, double a, double b) const { return fixed_point_.to_double(sum) / (a * b); }

  using UnionBound = MeanBound;
  static double bound_after_growth(double value, double others, double old_size, double size) {
    return (value * old_size + others * (size - old_size)) / size;
  }
  static constexpr bool kGrowthInvariant = false;
  static constexpr Growth kGrowth = Growth::gradual;
  static constexpr double floor = 0;

 private:
  FixedPoint<Stat> fixed_point_;
};

// Average linkage that counts its pairs. A pair without an edge counts as `missing`; if EdgesOnly, the mean
// is over the pairs with an edge. If points have weights, pairs are counted in multiples of 2^-count_shift.
template <class Sum, bool EdgesOnly>
class CountedAverageLinkage {
 public:
  struct Stat {
    Sum sum;
    std::int64_t count;
    auto operator<=>(const Stat&) const = default;
  };

  CountedAverageLinkage(Kind kind, double missing, int shift, int count_shift = 0)
      : floor(EdgesOnly ? kNoLinkage : (kind == Kind::similarity ? missing : -missing)),
        sums_(kind, shift),
        counts_(Kind::similarity, count_shift) {}

  Stat stat(float weight) const { return {sums_.from_double(weight), 1}; }
  Stat stat(float weight, double pairs) const {
    return {sums_.from_double(weight * pairs), counts_.from_double(pairs)};
  }
  static Stat stat(const CombinedEdges& edges) {
    return {FixedPoint<Sum>::from_limbs(edges.sum), edges.count};
  }
  static void combine(Stat& a, const Stat& b) { a.sum += b.sum, a.count += b.count; }
  double value(const Stat& stat, double a, double b) const {
    const double count = counts_.to_double(stat.count);
    if constexpr (EdgesOnly) return sums_.to_double(stat.sum) / count;
    return (sums_.to_double(stat.sum) + floor * (a * b - count)) / (a * b);
  }

  using UnionBound = std::conditional_t<EdgesOnly, MaxBound, MeanBound>;
  static double bound_after_growth(double value, double others, double old_size, double size) {
    return EdgesOnly ? value : AverageLinkage<Sum>::bound_after_growth(value, others, old_size, size);
  }
  static constexpr bool kGrowthInvariant = false;
  static constexpr Growth kGrowth = EdgesOnly ? Growth::none : Growth::gradual;
  const double floor;

 private:
  FixedPoint<Sum> sums_;
  FixedPoint<std::int64_t> counts_;
};

// The linkages that depend on the weights of the points.
template <class Linkage>
concept UsesPointWeights = requires(const Linkage& linkage) { linkage.stat(1.0f, 1.0); };

// Single linkage: the closest pair with an edge.
class SingleLinkage {
 public:
  using Stat = float;

  explicit SingleLinkage(Kind kind) : sign_(kind == Kind::similarity ? 1.0f : -1.0f) {}

  Stat stat(float weight) const { return sign_ * weight; }
  Stat stat(const CombinedEdges& edges) const { return stat(edges.weight); }
  static void combine(Stat& a, Stat b) { a = std::max(a, b); }
  static double value(Stat stat, double, double) { return stat; }

  using UnionBound = MaxBound;
  static double bound_after_growth(double value, double, double, double) { return value; }
  static constexpr bool kGrowthInvariant = true;
  static constexpr Growth kGrowth = Growth::none;
  static constexpr double floor = kNoLinkage;

 private:
  float sign_;
};

// Complete linkage over edges only: the farthest pair with an edge.
class EdgeCompleteLinkage : public SingleLinkage {
 public:
  using SingleLinkage::SingleLinkage;
  static void combine(Stat& a, Stat b) { a = std::min(a, b); }
  static constexpr bool kGrowthInvariant = false;
};

// Complete linkage: the farthest pair. A pair without an edge counts as `missing`.
class CompleteLinkage {
 public:
  struct Stat {
    std::int64_t count;
    float farthest;
  };

  CompleteLinkage(Kind kind, double missing)
      : sign_(kind == Kind::similarity ? 1.0f : -1.0f), floor(sign_ * missing) {}

  Stat stat(float weight) const { return {1, sign_ * weight}; }
  Stat stat(const CombinedEdges& edges) const { return {edges.count, sign_ * edges.weight}; }
  static void combine(Stat& a, Stat b) { a.count += b.count, a.farthest = std::min(a.farthest, b.farthest); }
  double value(Stat stat, double a, double b) const {
    const double farthest = stat.farthest;
    return static_cast<double>(stat.count) == a * b ? farthest : std::min(farthest, floor);
  }

  using UnionBound = MinBound;
  static double bound_after_growth(double value, double, double, double) { return value; }
  static constexpr bool kGrowthInvariant = false;
  static constexpr Growth kGrowth = Growth::once;

 private:
  float sign_;

 public:
  const double floor;
};

}  // namespace agglo
