// The linkages of edge weights (average, single and complete) as compile-time policies.
//
// In the core, a larger linkage always means closer, so distances are negated.
// A linkage class has these members:
//   Stat                         the statistics of the edges between two clusters
//   stat(weight)                 the Stat of one edge
//   stat(weight, pairs)          the Stat of one edge that counts as `pairs` edges (average linkage only)
//   stat(edges)                  the Stat of CombinedEdges
//   combine(a, b)                adds the edges of Stat b to Stat a
//   value(stat, a, b)            the linkage of clusters of sizes a and b
//   floor                        the value of a pair of points without an edge, or -inf to ignore such pairs
//
// All linkages in this file are reducible, so upper bounds on linkages can be computed after merges.
// The rounds use these members for upper bounds:
//   bound_rule()                 how to compute an upper bound for a merged cluster, see UnionBound
//   bound_after_growth(...)      an upper bound on the linkage to a neighbour that has grown
//   growth()                     how the linkage changes if a cluster grows without getting new edges
//   is_growth_invariant()        whether growth of the nearest neighbour never changes the linkage to it
//   size_at(stat, a, value)      the size b with value(stat, a, b) == value, up to rounding (if gradual)
//   is_constant(stat, a, b, ...) whether value(stat, a, b) is bit-identical for all larger sizes b
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/int384.hpp"
#include "neighbors/graph.hpp"

namespace agglo {

// Statistics of all edges between two clusters.
struct CombinedEdges {
  std::int64_t count;                 // number of edges
  std::span<const std::int64_t> sum;  // sum of the weights, as FixedPoint limbs, lowest limb first
  float weight;  // weight of the closest edge (single linkage) or of the farthest edge (complete)
};

constexpr int kFloatBits = 24;  // significant bits of a float

// How the linkage to a cluster changes while the cluster grows without new edges.
//  none: the linkage stays the same.
//  once: the linkage decreases at most once.
//  gradual: the linkage may change at every merge.
enum class Growth { none, once, gradual };

// The sizes that clusters of a run can have: the multiples of `unit` (a power of two) up to `total`.
struct SizeRange {
  double total = 0, unit = 1;
};

constexpr double kNoLinkage = -std::numeric_limits<double>::infinity();

// An upper bound on the linkage of a merged cluster to its neighbours.
// It is computed from the upper bounds of the parts, which are the clusters that merged.
class UnionBound {
 public:
  // How the linkage of a merged cluster to a neighbour depends on the linkages of the parts:
  // max: it is at most the largest linkage of a part.
  // min: it is at most the smallest linkage of a part.
  // mean: it is the mean of the linkages of the parts, weighted by their sizes.
  enum Rule { max, min, mean };

  explicit UnionBound(Rule rule)
      : rule_(rule),
        total_(rule == max   ? kNoLinkage
               : rule == min ? -kNoLinkage
                             : 0.0) {}
  void add(double bound, double size, double floor) {
    if (rule_ == max)
      total_ = std::max(total_, bound);
    else if (rule_ == min)
      total_ = std::min(total_, std::max(bound, floor));
    else
      total_ += std::max(bound, floor) * size;
  }
  double get(double size) const { return rule_ == mean ? total_ / size : total_; }

 private:
  Rule rule_;
  double total_;
};

// Converts numbers to fixed point. A fixed-point number is a multiple of 2^-shift, stored as an integer of
// type Sum.
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
  double scale_, step_;  // scale_ is negative for distances, so that a larger sum means closer
};

// Average linkage: the mean weight over pairs of points.
//
// A pair without an edge has weight `missing`. If `missing` is unset, the mean is over pairs with an edge.
// If points have weights, a pair counts as many times as the product of its two point weights.
// These products are stored as multiples of 2^-count_shift.
template <class Sum>
class AverageLinkage {
 public:
  struct Stat {
    Sum sum;
    std::int64_t count;  // number of pairs with an edge
    auto operator<=>(const Stat&) const = default;
  };

  AverageLinkage(Kind kind, std::optional<double> missing, int shift, int count_shift)
      : edges_only_(!missing),
        floor(edges_only_ ? kNoLinkage : (kind == Kind::similarity ? *missing : -*missing)),
        sums_(kind, shift),
        counts_(Kind::similarity, count_shift),
        floor_steps_(edges_only_ ? 0.0 : odd_part(floor)) {}

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
    if (edges_only_) return sums_.to_double(stat.sum) / count;
    return (sums_.to_double(stat.sum) + floor * (a * b - count)) / (a * b);
  }

  double bound_after_growth(double value, double others, double old_size, double size) const {
    return edges_only_ ? value : (value * old_size + others * (size - old_size)) / size;
  }
  UnionBound::Rule bound_rule() const { return edges_only_ ? UnionBound::max : UnionBound::mean; }
  Growth growth() const { return edges_only_ ? Growth::none : Growth::gradual; }
  // Returns the size b at which the linkage value(stat, a, b) = floor + excess / (a * b) equals the argument
  // `value`.
  double size_at(const Stat& stat, double a, double value) const {
    const double excess = sums_.to_double(stat.sum) - floor * counts_.to_double(stat.count);
    return excess / (a * (value - floor));
  }
  // Returns whether the linkage stays the same, to the last bit, when the second cluster grows.
  // If the mean weight of the edges is `floor`, the linkage is `floor` for any size, unless value() rounds.
  // value() multiplies `floor` by numbers of pairs. The largest number of pairs is a * total.
  // If all these products have at most 53 bits, value() does not round.
  bool is_constant(const Stat& stat, double a, double, const SizeRange& sizes) const {
    if (edges_only_) return true;
    const double count = counts_.to_double(stat.count), unit = sizes.unit * sizes.unit;
    return sums_.to_double(stat.sum) == floor * count && std::fmod(count, unit) == 0 &&
           floor_steps_ * (a * sizes.total / unit) <= std::ldexp(1.0, std::numeric_limits<double>::digits);
  }
  static constexpr bool is_growth_invariant() { return false; }

 private:
  const bool edges_only_;

 public:
  const double floor;

 private:
  // Returns the odd integer m for which |value| = m * 2^e with an integer e. For value 0, returns 1.
  static double odd_part(double value) {
    int exponent;
    double part = std::fabs(std::frexp(value, &exponent));
    while (part != std::floor(part)) part *= 2;
    return std::max(part, 1.0);
  }

  FixedPoint<Sum> sums_;
  FixedPoint<std::int64_t> counts_;
  double floor_steps_;  // the odd part of |floor|
};

// The linkage classes that depend on the weights of the points.
template <class Linkage>
concept UsesPointWeights = requires(const Linkage& linkage) { linkage.stat(1.0f, 1.0); };

// The linkages that are the weight of one edge between the two clusters.
// Single linkage is the weight of the closest edge between two clusters.
// Complete linkage without `missing` is the weight of the farthest edge between two clusters.
class EdgeLinkage {
 public:
  using Stat = float;  // the edge weight or its negative; of two edges, the linkage selects the larger Stat

  EdgeLinkage(Kind kind, bool is_single)
      : is_single_(is_single), sign_((kind == Kind::similarity) == is_single ? 1.0f : -1.0f) {}

  Stat stat(float weight) const { return sign_ * weight; }
  Stat stat(const CombinedEdges& edges) const { return stat(edges.weight); }
  static void combine(Stat& a, Stat b) { a = std::max(a, b); }
  double value(Stat stat, double, double) const { return is_single_ ? stat : -stat; }

  static double bound_after_growth(double value, double, double, double) { return value; }
  static constexpr UnionBound::Rule bound_rule() { return UnionBound::max; }
  static constexpr Growth growth() { return Growth::none; }
  bool is_growth_invariant() const { return is_single_; }
  static constexpr bool is_constant(Stat, double, double, const SizeRange&) { return true; }
  static constexpr double floor = kNoLinkage;

 private:
  bool is_single_;
  float sign_;
};

// Complete linkage: the weight of the farthest pair of points. A pair without an edge has weight `missing`.
class CompleteLinkage {
 public:
  struct Stat {
    std::int64_t count;
    float farthest;
    auto operator<=>(const Stat&) const = default;
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

  static double bound_after_growth(double value, double, double, double) { return value; }
  static constexpr UnionBound::Rule bound_rule() { return UnionBound::min; }
  static constexpr Growth growth() { return Growth::once; }
  bool is_constant(Stat stat, double a, double b, const SizeRange& sizes) const {
    return value(stat, a, b) == value(stat, a, 2 * sizes.total);
  }
  static constexpr bool is_growth_invariant() { return false; }

 private:
  float sign_;

 public:
  const double floor;
};

enum class Linkage { average, single, complete };

// A linkage of edge weights and its parameters.
struct LinkageSpec {
  Kind kind = Kind::similarity;
  Linkage linkage = Linkage::average;
  std::optional<double> missing;  // weight of a pair without an edge; if unset, such pairs are ignored
  int shift = 0;                  // average linkage: the unit of sums is 2^-shift, see FixedPoint
  std::size_t limbs = 1;          // average linkage: number of 64-bit limbs per sum (1, 2 or 6)
  int count_shift = 0;            // average linkage, weighted points: the unit of counts is 2^-count_shift
};

// Creates the linkage that `spec` describes, and returns run(linkage).
template <class Run>
auto with_linkage(const LinkageSpec& spec, const Run& run) {
  const auto run_average = [&]<class Sum>(Sum) {
    return run(AverageLinkage<Sum>(spec.kind, spec.missing, spec.shift, spec.count_shift));
  };
  if (spec.linkage == Linkage::average) {
    if (spec.limbs == FixedPoint<std::int64_t>::kLimbs) return run_average(std::int64_t{});
    if (spec.limbs == FixedPoint<__int128>::kLimbs) return run_average(__int128{});
    return run_average(Int384{});
  }
  if (spec.linkage == Linkage::complete && spec.missing)
    return run(CompleteLinkage(spec.kind, *spec.missing));
  return run(EdgeLinkage(spec.kind, spec.linkage == Linkage::single));
}

}  // namespace agglo
