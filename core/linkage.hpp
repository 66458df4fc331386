// The linkages: what is kept of the edges between two clusters, and how close it makes them.
//
// Inside the core larger is closer: a distance is used with its sign turned. A linkage is a policy with
//   Stat                  what is kept of the edges between two clusters
//   of(weight)            the Stat of one edge; combine(a, b) adds b's edges to a
//   value(stat, a, b)     the linkage of clusters of sizes a and b
//   floor                 what clusters without any edge count as inside a larger pair; -inf if nothing
// and, because all of them are reducible, two bounds that let the rounds look at few lists:
//   Blend                 an upper bound on the union's linkage to any one cluster, from its parts' bounds
//   grown(...)            an upper bound on the linkage to a neighbour that has since grown
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "graph.hpp"

namespace agglo {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// The mean over all pairs, one without an edge counting as `missing`. Weights are rounded to a fixed-point
// grid so fine that only weights 2^30 times smaller than the largest feel it, and summed as integers: a sum
// then depends neither on its order nor on how it was grouped, which is what makes all engines agree.
class FixedPoint {
 public:
  FixedPoint(const GraphView& graph, double missing) {
    double largest = std::fabs(missing);
    for (const float weight : graph.weights) largest = std::max(largest, std::fabs(double{weight}));
    int exponent = 0;
    std::frexp(largest, &exponent);  // largest < 2^exponent
    const auto edges = static_cast<std::uint64_t>(graph.weights.size() / 2);
    const int shift = 61 - exponent - std::bit_width(edges);
    up_ = std::ldexp(1.0, shift);
    down_ = std::ldexp(1.0, -shift);
  }
  std::int64_t of(double weight) const { return std::llrint(weight * up_); }
  double unit() const { return down_; }

 private:
  double up_, down_;
};

class AverageLinkage {
 public:
  using Stat = std::int64_t;

  AverageLinkage(const GraphView& graph, Kind kind, double missing)
      : grid_(graph, missing),
        sign_(kind == Kind::similarity ? 1 : -1),
        absent_(sign_ * grid_.of(missing)),
        floor(static_cast<double>(absent_) * grid_.unit()) {}

  Stat of(float weight) const { return sign_ * grid_.of(weight) - absent_; }
  static void combine(Stat& a, Stat b) { a += b; }
  double value(Stat sum, double a, double b) const {
    return floor + static_cast<double>(sum) / (a * b) * grid_.unit();
  }

  // Every part has its say in proportion to its size.
  struct Blend {
    double sum = 0;
    void add(double bound, double size, double floor) { sum += std::max(bound, floor) * size; }
    double of(double size) const { return sum / size; }
  };
  static double grown(double was, double others, double old_size, double size) {
    return (was * old_size + others * (size - old_size)) / size;
  }
  static constexpr bool steadfast = false;

 private:
  FixedPoint grid_;
  std::int64_t sign_, absent_;

 public:
  const double floor;
};

// A bound where a union may be as close as its closest part.
struct Closest {
  double most = kNone;
  void add(double bound, double, double) { most = std::max(most, bound); }
  double of(double) const { return most; }
};

// The mean over the pairs that have an edge.
class PresentAverageLinkage {
 public:
  struct Stat {
    std::int64_t sum, count;
  };

  PresentAverageLinkage(const GraphView& graph, Kind kind)
      : grid_(graph, 0), sign_(kind == Kind::similarity ? 1 : -1) {}

  Stat of(float weight) const { return {sign_ * grid_.of(weight), 1}; }
  static void combine(Stat& a, Stat b) { a.sum += b.sum, a.count += b.count; }
  double value(Stat stat, double, double) const {
    return static_cast<double>(stat.sum) / static_cast<double>(stat.count) * grid_.unit();
  }

  using Blend = Closest;
  static double grown(double was, double, double, double) { return was; }
  static constexpr bool steadfast = false;
  static constexpr double floor = kNone;

 private:
  FixedPoint grid_;
  std::int64_t sign_;
};

// The closest pair that has an edge. A neighbour that grows stays as close as it was: it is steadfast.
class SingleLinkage {
 public:
  using Stat = float;

  explicit SingleLinkage(Kind kind) : sign_(kind == Kind::similarity ? 1.0f : -1.0f) {}

  Stat of(float weight) const { return sign_ * weight; }
  static void combine(Stat& a, Stat b) { a = std::max(a, b); }
  static double value(Stat stat, double, double) { return stat; }

  using Blend = Closest;
  static double grown(double was, double, double, double) { return was; }
  static constexpr bool steadfast = true;
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

 private:
  float sign_;

 public:
  const double floor;
};

}  // namespace agglo
