// The linkages of edge weights (average, single and complete) as compile-time policies.
//
// In the core, a larger value always means closer: distances are negated. A linkage class has these members:
//   Stat                         the statistics of the edges between two clusters
//   stat(weight)                 the Stat of one edge
//   stat(weight, pairs)          averages only: the Stat of one edge that counts as `pairs` edges
//   stat(edges)                  the Stat of CombinedEdges
//   combine(a, b)                adds the edges of b to a
//   value(stat, a, b)            the linkage of clusters of sizes a and b
//   floor                        the value of a pair of points without an edge; -inf: such pairs are ignored
//
// All linkages are reducible, so linkages after merges have upper bounds. The rounds use these members:
//   UnionBound                   upper bound on the linkage of a merged cluster, from the bounds of its parts
//   bound_after_growth(...)      upper bound on the linkage to a neighbour that has grown
//   kGrowthInvariant             whether the linkage to a neighbour stays the same if the neighbour grows
//   kGrowth                      how the linkage changes if a cluster grows without getting new edges
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

// Statistics of all edges between two clusters.
struct CombinedEdges {
  std::int64_t count;                 // number of edges
  std::span<const std::int64_t> sum;  // sum of the weights, as FixedPoint limbs, lowest limb first
  float weight;                       // weight of the closest edge (single) or the farthest edge (complete)
};

constexpr int kFloatBits = 24;  // significant bits of a float

// How a linkage changes while a cluster grows without new edges.
// none: it stays the same; once: it decreases at most once; gradual: it may change at every merge.
enum class Growth { none, once, gradual };

constexpr double kNoLinkage = -std::numeric_limits<double>::infinity();

// Upper bound for linkages where a merged cluster may be as close as its closest part.
struct MaxBound {
  double max = kNoLinkage;
  void add(double bound, double, double) { max = std::max(max, bound); }
  double get(double) const { return max; }
};

// Upper bound for linkages where a merged cluster is never closer than its farthest part.
struct MinBound {
  double min = std::numeric_limits<double>::infinity();
  void add(double bound, double, double floor) { min = std::min(min, std::max(bound, floor)); }
  double get(double) const { return min; }
};

// Upper bound for linkages that are a mean over the parts of a merged cluster, weighted by size.
struct MeanBound {
  double sum = 0;
  void add(double bound, double size, double floor) { sum += std::max(bound, floor) * size; }
  double get(double size) const { return sum / size; }
};

// Conversion to fixed-point numbers: multiples of 2^-shift, stored as integers of type Sum.
//
// Integer sums do not depend on the order of summation, so all engines compute the same sums.
// The caller chooses Sum and shift such that no sum overflows and no weight is rounded.
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
  double scale_, step_;  // scale_ is negative for distances
};

// Average linkage: the mean weight over all pairs of points. A pair without an edge has weight 0.
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

// Average linkage that also stores the number of pairs with an edge.
//
// If EdgesOnly is true, the mean is over these pairs. Otherwise a pair without an edge has weight `missing`.
// If points have weights, a pair counts as the product of its two weights, in multiples of 2^-count_shift.
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

// Whether a linkage depends on the weights of the points.
template <class Linkage>
concept UsesPointWeights = requires(const Linkage& linkage) { linkage.stat(1.0f, 1.0); };

// Single linkage: the weight of the closest pair of points with an edge.
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

// Complete linkage over edges only: the weight of the farthest pair of points with an edge.
class EdgeCompleteLinkage : public SingleLinkage {
 public:
  using SingleLinkage::SingleLinkage;
  static void combine(Stat& a, Stat b) { a = std::min(a, b); }
  static constexpr bool kGrowthInvariant = false;
};

// Complete linkage: the weight of the farthest pair of points. A pair without an edge has weight `missing`.
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
