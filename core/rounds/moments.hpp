// Vector linkages (average, centroid and Ward), computed from the weight, the mean and the spread of each
// cluster.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/memory.hpp"
#include "points/space.hpp"
#include "rounds/linkage.hpp"
#include "simd/dot.hpp"

namespace agglo {

enum class VectorLinkage { average, centroid, ward };

// The vectors of the initial points or clusters, and the linkage that compares them.
struct Vectors {
  // Each row is a point or the mean of an initial cluster. For the cosine metric, points have norm 1.
  // After a merge, the mean of the merged cluster overwrites the row of the smallest point of this cluster.
  std::span<float> means;
  std::int64_t d = 0;  // number of columns
  VectorLinkage linkage = VectorLinkage::average;
  Metric metric = Metric::cosine;
  std::span<const double> weights;  // weight of each row (if empty, each is 1)
  std::span<const double> spreads;  // spread of each row (see Moment); empty if the rows are points
};

// The weight, squared norm and spread of one cluster. The mean of the cluster is a row of Vectors::means.
struct Moment {
  double weight;
  double squared_norm;  // squared norm of the mean
  double spread;        // sum of the squared distances of the points to the mean
  bool is_point;        // whether the cluster is a point, not a merged or initial cluster
};

// Computes vector linkages. A larger value means closer clusters, so distances are negated.
class VectorComparison {
 public:
  VectorComparison(VectorLinkage linkage, Metric metric, std::int64_t d)
      : linkage_(linkage),
        metric_(metric),
        by_similarity_(is_similarity(metric) && linkage != VectorLinkage::ward),
        d_(d) {}

  // Returns the linkage of two points, computed from the weight of the edge between them.
  double compare_points(const Moment& x, const Moment& y, double weight) const {
    if (by_similarity_) return weight;
    switch (metric_) {
      case Metric::cosine:
        return -distance(x, y, 2 - 2 * weight);
      case Metric::euclidean:
        return -distance(x, y, weight * weight);
      default:
        return -distance(x, y, weight);
    }
  }

  // Returns the linkage of two clusters, whose means are a and b. For two points, use compare_points instead.
  double compare_means(const Moment& x, const float* a, const Moment& y, const float* b) const {
    const double inner = dot(a, b, d_);
    if (!by_similarity_) return -distance(x, y, squared_distance_of(x.squared_norm, y.squared_norm, inner));
    if (linkage_ == VectorLinkage::average) return inner;
    const double lengths = std::sqrt(x.squared_norm * y.squared_norm);
    return lengths > 0 ? inner / lengths : 0.0;
  }

  // Returns the squared distance of two vectors, given their squared norms a and b and inner product `inner`.
  static double squared_distance_of(double a, double b, double inner) {
    return std::max(a + b - 2 * inner, 0.0);
  }

 private:
  // Returns the distance of two clusters. `square` is the squared distance of their means.
  double distance(const Moment& x, const Moment& y, double square) const {
    if (linkage_ == VectorLinkage::average) return square + (x.spread / x.weight + y.spread / y.weight);
    if (linkage_ == VectorLinkage::ward) square = 2 * (x.weight * y.weight / (x.weight + y.weight)) * square;
    return metric_ == Metric::euclidean ? std::sqrt(square) : square;
  }

  const VectorLinkage linkage_;
  const Metric metric_;
  const bool by_similarity_;
  const std::int64_t d_;
};

// The moments of all clusters of a run.
// Sums are computed in a fixed order, so that all engines return bit-identical results.
class Moments {
 public:
  Moments(const Vectors& vectors, std::int64_t n)
      : vectors_(vectors), comparison_(vectors.linkage, vectors.metric, vectors.d), moments_(n) {
    for (std::int64_t i = 0; i < n; ++i) {
      Moment& moment = moments_[i];
      moment.weight = vectors.weights.empty() ? 1.0 : vectors.weights[i];
      moment.spread = vectors.spreads.empty() ? 0.0 : vectors.spreads[i];
      moment.is_point = vectors.spreads.empty();
      moment.squared_norm = dot(mean(static_cast<Id>(i)), mean(static_cast<Id>(i)), vectors.d);
    }
  }

  double weight(Id x) const { return moments_[x].weight; }
  const Moment& operator[](Id x) const { return moments_[x]; }
  const float* mean(Id x) const { return vectors_.means.data() + x * vectors_.d; }

  // Returns the linkage of initial clusters a and b. `weight` is the weight of the edge between them.
  // If both are points, the linkage is computed from the edge weight, otherwise from the moments.
  double value(Id a, Id b, float weight) const {
    const Moment &x = moments_[a], &y = moments_[b];
    return x.is_point && y.is_point ? comparison_.compare_points(x, y, weight) : value(a, b);
  }

  // Returns the linkage of two clusters, computed from their moments. At most one of them may be a point.
  double value(Id a, Id b) const {
    return comparison_.compare_means(moments_[a], mean(a), moments_[b], mean(b));
  }

  // Scratch memory of merge().
  struct Scratch {
    std::vector<double> sum;
    std::vector<float> mean;
  };
  // Merges the clusters `parts` into the first of them. `parts` must be sorted by id.
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
    const double squared_norm = dot(scratch.mean.data(), scratch.mean.data(), d);
    double spread = 0;
    for (const Id x : parts)
      spread += moments_[x].spread + moments_[x].weight * VectorComparison::squared_distance_of(
                                                              moments_[x].squared_norm, squared_norm,
                                                              dot(mean(x), scratch.mean.data(), d));
    moments_[parts.front()] = {weight, squared_norm, spread, false};
    std::copy(scratch.mean.begin(), scratch.mean.end(), vectors_.means.data() + parts.front() * d);
  }

  void prefetch_cluster(Id x) const {
    prefetch(mean(x), vectors_.d);
    prefetch_moment(x);
  }
  void prefetch_moment(Id x) const { prefetch(&moments_[x]); }

 private:
  const Vectors vectors_;
  const VectorComparison comparison_;
  Array<Moment> moments_;
};

}  // namespace agglo
