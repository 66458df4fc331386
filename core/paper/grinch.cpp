#include "paper/grinch.hpp"

#include <cmath>
#include <limits>

#include "paper/growing_tree.hpp"
#include "simd/dot.hpp"

namespace agglo::paper {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kNever = -std::numeric_limits<double>::infinity();

class GrinchBuilder {
 public:
  GrinchBuilder(const Points<float>& points, std::span<const std::int32_t> near, std::int64_t k,
                const GrinchPlan& plan)
      : points_(points),
        near_(near),
        k_(k),
        plan_(plan),
        tree_(points.n),
        score_(std::max<std::int64_t>(1, 2 * points.n - 1), kUnknown),
        stamp_(points.n, -1) {
    if (!uses_sums()) return;
    sum_.resize(score_.size() * points.d);
    norm_.resize(score_.size());
    square_.resize(score_.size());
  }

  Grinch run(const Report& report) {
    for (std::int64_t i = 0; i < points_.n; ++i) {
      insert(static_cast<std::int32_t>(i));
      if (report) report(i, points_.n);
    }
    Grinch result;
    std::vector<std::int32_t> new_id;
    result.parent = tree_.to_parents(new_id);
    result.value.assign(result.parent.size(), 0.0);
    for (std::size_t v = points_.n; v < new_id.size(); ++v)
      if (new_id[v] >= 0) result.value[new_id[v]] = score(static_cast<std::int32_t>(v));
    return result;
  }

 private:
  bool uses_sums() const {
    return plan_.linkage == GrinchLinkage::average || plan_.linkage == GrinchLinkage::centroid;
  }
  bool is_small(std::int32_t v) const { return plan_.cap == 0 || tree_.size(v) <= plan_.cap; }
  const float* sum(std::int32_t v) const { return sum_.data() + v * points_.d; }

  void insert(std::int32_t x) {
    if (uses_sums()) {
      std::copy_n(points_.row(x), points_.d, sum_.begin() + x * points_.d);
      norm_[x] = square_[x] = dot(points_.row(x), points_.row(x), points_.d);
    }
    present_ = x + 1;
    if (x == 0) return tree_.set_root(0);
    // Walk up from the leaf nearest to x. Stop at a node that is at least as similar to x as to its sibling.
    std::int32_t beside = near_[x * k_];
    while (tree_.parent(beside) >= 0 && is_small(tree_.parent(beside)) &&
           linkage(x, beside) < score(tree_.parent(beside)))
      beside = tree_.parent(beside);
    std::int32_t v = tree_.insert_beside(beside, x);
    update_ancestors(v);
    if (!plan_.graft) return;
    // Each graft creates a node above the nodes of earlier grafts for x. So there are fewer than n grafts.
    while (v >= 0 && is_small(v)) {
      const std::int32_t grafted = graft(v, x);
      if (grafted >= 0) {
        v = grafted;
      } else if (plan_.single_elimination) {
        return;
      } else {
        v = tree_.parent(v);
      }
    }
  }

  // Tries to move v, or an ancestor of v, beside a node outside v.
  // The two nodes must be more similar to each other than to their siblings.
  // Returns the common parent of the two nodes after the graft, or -1 if there was no graft.
  std::int32_t graft(std::int32_t v, std::int32_t x) {
    std::int32_t other = find_nearest_outside(v, x);
    if (other < 0) return -1;
    const std::int32_t ancestor = find_common_ancestor(v, other);
    while (v != ancestor && other != ancestor && tree_.sibling(v) != other) {
      if (!is_small(v) || !is_small(other)) return -1;
      const double both = linkage(v, other);
      // In a tie, a node prefers the graft if its sibling contains the other node.
      const bool v_prefers = prefers(both, v, ancestor), other_prefers = prefers(both, other, ancestor);
      if (v_prefers && other_prefers) return move_beside(v, other);
      if (!other_prefers) other = tree_.parent(other);
      if (!v_prefers) v = tree_.parent(v);
    }
    return -1;
  }

  bool prefers(double value, std::int32_t v, std::int32_t ancestor) {
    const std::int32_t over = tree_.parent(v);
    return value > score(over) || (value == score(over) && over == ancestor);
  }

  std::int32_t move_beside(std::int32_t v, std::int32_t other) {
    const std::int32_t left_behind = tree_.sibling(v);
    const std::int32_t spare = tree_.detach(v);
    const std::int32_t node = tree_.insert_beside(other, v, spare);
    update_ancestors(node);
    if (tree_.parent(left_behind) >= 0) update_ancestors(tree_.parent(left_behind));
    restructure(left_behind, find_common_ancestor(left_behind, node));
    return node;
  }

  // Improves the siblings of z and of the ancestors of z below `top`.
  // The candidates for the new sibling of a node are its sibling and the siblings of its ancestors.
  // The most similar candidate becomes the new sibling.
  void restructure(std::int32_t z, std::int32_t top) {
    for (; z != top && tree_.parent(z) != top && is_small(z); z = tree_.parent(z)) {
      std::int32_t best = tree_.sibling(z);
      double most = score(tree_.parent(z));
      for (std::int32_t a = tree_.parent(z); a != top; a = tree_.parent(a)) {
        const std::int32_t candidate = tree_.sibling(a);
        if (!is_small(candidate)) continue;
        const double found = linkage(z, candidate);
        if (found > most) {
          most = found;
          best = candidate;
        }
      }
      if (best == tree_.sibling(z)) continue;
      tree_.exchange(tree_.sibling(z), best);
      update_ancestors(tree_.parent(z));  // these ancestors include the new parent of the old sibling
    }
  }

  // Finds a near leaf outside v. If there is none, returns -1.
  // If plan.scan is true, returns the leaf nearest to v among all leaves outside v.
  // If plan.scan is false, returns the first leaf outside v in the neighbour list of the new point x.
  std::int32_t find_nearest_outside(std::int32_t v, std::int32_t x) {
    if (!plan_.scan) {
      for (const std::int32_t y : near_.subspan(x * k_, k_))
        if (y >= 0 && !is_below(y, v)) return y;
      return -1;
    }
    ++time_;
    tree_.leaves(v, [this](std::int32_t leaf) {
      stamp_[leaf] = time_;
      return true;
    });
    std::int32_t best = -1;
    double most = kNever;
    for (std::int32_t leaf = 0; leaf < present_; ++leaf) {
      if (stamp_[leaf] == time_) continue;
      const double found = linkage(v, leaf);
      if (found > most || best < 0) {
        most = found;
        best = leaf;
      }
    }
    return best;
  }

  bool is_below(std::int32_t leaf, std::int32_t v) const {
    std::int32_t w = leaf;
    while (w >= 0 && w != v) w = tree_.parent(w);
    return w == v;
  }

  // Finds the lowest common ancestor of a and b. This ancestor may be a or b itself.
  std::int32_t find_common_ancestor(std::int32_t a, std::int32_t b) const {
    std::int64_t depth_a = depth(a), depth_b = depth(b);
    for (; depth_a > depth_b; --depth_a) a = tree_.parent(a);
    for (; depth_b > depth_a; --depth_b) b = tree_.parent(b);
    while (a != b) {
      a = tree_.parent(a);
      b = tree_.parent(b);
    }
    return a;
  }

  std::int64_t depth(std::int32_t v) const {
    std::int64_t steps = 0;
    while ((v = tree_.parent(v)) >= 0) ++steps;
    return steps;
  }

  // Recomputes the size, sum and norms of inner node v and of all ancestors of v.
  void update_ancestors(std::int32_t v) {
    const std::int64_t d = points_.d;
    for (; v >= 0; v = tree_.parent(v)) {
      tree_.resize(v);
      score_[v] = kUnknown;
      if (!uses_sums()) continue;
      const std::int32_t a = tree_.left(v), b = tree_.right(v);
      for (std::int64_t j = 0; j < d; ++j) sum_[v * d + j] = sum_[a * d + j] + sum_[b * d + j];
      norm_[v] = dot(sum(v), sum(v), d);
      square_[v] = square_[a] + square_[b];
    }
  }

  // Returns the linkage of the two children of v.
  double score(std::int32_t v) {
    if (std::isnan(score_[v])) score_[v] = linkage(tree_.left(v), tree_.right(v));
    return score_[v];
  }

  double linkage(std::int32_t v, std::int32_t w) const {
    if (!uses_sums()) return linkage_of_pairs(v, w);
    const double a = tree_.size(v), b = tree_.size(w);
    const double product = dot(sum(v), sum(w), points_.d);
    if (plan_.linkage == GrinchLinkage::average)
      return plan_.dot ? product / (a * b) : 2 * product / (a * b) - square_[v] / a - square_[w] / b;
    if (!plan_.dot) return 2 * product / (a * b) - norm_[v] / (a * a) - norm_[w] / (b * b);
    const double lengths = std::sqrt(norm_[v] * norm_[w]);
    return lengths > 0 ? product / lengths : 0;
  }

  double linkage_of_pairs(std::int32_t v, std::int32_t w) const {
    const bool closest = plan_.linkage == GrinchLinkage::single;
    double found = closest ? kNever : -kNever;
    tree_.leaves(v, [&](std::int32_t x) {
      return tree_.leaves(w, [&](std::int32_t y) {
        const double value = plan_.dot ? dot(points_.row(x), points_.row(y), points_.d)
                                       : -squared_distance(points_.row(x), points_.row(y), points_.d);
        found = closest ? std::max(found, value) : std::min(found, value);
        return true;
      });
    });
    return found;
  }

  const Points<float> points_;
  const std::span<const std::int32_t> near_;
  const std::int64_t k_;
  const GrinchPlan plan_;
  GrowingTree tree_;
  std::vector<double> score_;        // linkage of the children of each node; NaN if not computed yet
  std::vector<float> sum_;           // sum of the points of each node
  std::vector<double> norm_;         // squared norm of sum_ for each node
  std::vector<double> square_;       // sum of the squared norms of the points of each node
  std::vector<std::int64_t> stamp_;  // number of the last scan that excluded each leaf
  std::int64_t time_ = 0;            // number of the current scan
  std::int32_t present_ = 0;         // number of points inserted so far
};

}  // namespace

Grinch build_grinch_tree(const Points<float>& points, std::span<const std::int32_t> near, std::int64_t k,
                         const GrinchPlan& plan, const Report& report) {
  return GrinchBuilder(points, near, k, plan).run(report);
}

}  // namespace agglo::paper
