// What linkages of the points themselves keep of clusters: weights, means and spreads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "points/space.hpp"
#include "rounds/adjacency.hpp"
#include "rounds/linkage.hpp"
#include "simd/dot.hpp"

namespace agglo {

enum class VectorLinkage { average, centroid, ward };

// Points, or clusters to start from, and how to compare them.
struct Vectors {
  std::span<float> means;  // a row each: points (of length 1 for cosines), or means; overwritten by those of
                           // the clusters that are made of them, each in the row of its smallest point
  std::int64_t d = 0;      // columns
  VectorLinkage linkage = VectorLinkage::average;
  Metric metric = Metric::cosine;
  std::span<const double> weights;  // of the rows; empty: 1 each
  std::span<const double> spreads;  // sums of squared distances to the means; empty: the rows are points
};

// What is kept of a cluster beside its mean.
struct Moment {
  double weight, square, spread;  // square: of the length of the mean
  bool point;                     // whether it is a single one
};

// How close two clusters are: the larger, the closer.
class Comparison {
 public:
  Comparison(VectorLinkage linkage, Metric metric, std::int64_t d)
      : linkage_(linkage),
        metric_(metric),
        similar_(similarity(metric) && linkage != VectorLinkage::ward),
        d_(d) {}

  // Points are as close as the weight of their edge says.
  double of_points(const Moment& x, const Moment& y, double weight) const {
    if (similar_) return weight;
    switch (metric_) {
      case Metric::cosine:
        return -distance(x, y, 2 - 2 * weight);
      case Metric::euclidean:
        return -distance(x, y, weight * weight);
      default:
        return -distance(x, y, weight);
    }
  }

  // Of clusters of which at least one is no point.
  double of_means(const Moment& x, const float* a, const Moment& y, const float* b) const {
    const double inner = dot(a, b, d_);
    if (!similar_) return -distance(x, y, squared(x.square, y.square, inner));
    if (linkage_ == VectorLinkage::average) return inner;
    const double lengths = std::sqrt(x.square * y.square);
    return lengths > 0 ? inner / lengths : 0.0;
  }

  static double squared(double a, double b, double inner) { return std::max(a + b - 2 * inner, 0.0); }

 private:
  // Of clusters whose means are that far apart.
  double distance(const Moment& x, const Moment& y, double square) const {
    if (linkage_ == VectorLinkage::average) return square + (x.spread / x.weight + y.spread / y.weight);
    if (linkage_ == VectorLinkage::ward) square = 2 * (x.weight * y.weight / (x.weight + y.weight)) * square;
    return metric_ == Metric::euclidean ? std::sqrt(square) : square;
  }

  const VectorLinkage linkage_;
  const Metric metric_;
  const bool similar_;
  const std::int64_t d_;
};

// The clusters of a run. All sums have an order of their own, so that every engine comes to the same bits.
class Moments {
 public:
  Moments(const Vectors& given, std::int64_t n)
      : vectors_(given), compare_(given.linkage, given.metric, given.d), moments_(n) {
    for (std::int64_t i = 0; i < n; ++i) {
      Moment& moment = moments_[i];
      moment.weight = given.weights.empty() ? 1.0 : given.weights[i];
      moment.spread = given.spreads.empty() ? 0.0 : given.spreads[i];
      moment.point = given.spreads.empty();
      moment.square = dot(mean(static_cast<Id>(i)), mean(static_cast<Id>(i)), given.d);
    }
  }

  double weight(Id x) const { return moments_[x].weight; }
  const Moment& operator[](Id x) const { return moments_[x]; }
  const float* mean(Id x) const { return vectors_.means.data() + x * vectors_.d; }

  // How close two clusters to start from are that have an edge of that weight: if they are points, it says
  // so.
  double value(Id a, Id b, float weight) const {
    const Moment &x = moments_[a], &y = moments_[b];
    return x.point && y.point ? compare_.of_points(x, y, weight) : value(a, b);
  }

  // How close two clusters are of which at least one is no point.
  double value(Id a, Id b) const { return compare_.of_means(moments_[a], mean(a), moments_[b], mean(b)); }

  // Makes one cluster of parts in order of name, of which it is the first.
  struct Scratch {
    std::vector<double> sum;
    std::vector<float> mean;
  };
  void merge(std::span<const Id> parts, Scratch& scratch) {
    const std::int64_t d = vectors_.d;
    scratch.sum.assign(d, 0.0);
    scratch.mean.resize(d);
    double weight = 0;
    for (const Id x : parts) {
      weight += moments_[x].weight;
      const float* row = mean(x);
      for (std::int64_t j = 0; j < d; ++j) scratch.sum[j] += moments_[x].weight * row[j];
    }
    for (std::int64_t j = 0; j < d; ++j) scratch.mean[j] = static_cast<float>(scratch.sum[j] / weight);
    const double square = dot(scratch.mean.data(), scratch.mean.data(), d);
    double spread = 0;
    for (const Id x : parts)
      spread +=
          moments_[x].spread + moments_[x].weight * Comparison::squared(moments_[x].square, square,
                                                                        dot(mean(x), scratch.mean.data(), d));
    moments_[parts.front()] = {weight, square, spread, false};
    std::copy(scratch.mean.begin(), scratch.mean.end(), vectors_.means.data() + parts.front() * d);
  }

  void prefetch(Id x) const {
    agglo::prefetch(mean(x), vectors_.d);
    ask_for_moment(x);
  }
  void ask_for_moment(Id x) const { agglo::prefetch(&moments_[x]); }

 private:
  const Vectors vectors_;
  const Comparison compare_;
  Array<Moment> moments_;
};

}  // namespace agglo
