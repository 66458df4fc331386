#include "paper/grinch.hpp"

#include <cmath>
#include <limits>

#include "paper/growing_tree.hpp"
#include "simd/dot.hpp"

namespace agglo {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kNever = -std::numeric_limits<double>::infinity();

class Grower {
 public:
  Grower(const Points<float>& points, std::span<const std::int32_t> near, std::int64_t k,
         const GrinchPlan& plan)
      : points_(points),
        near_(near),
        k_(k),
        plan_(plan),
        tree_(points.n),
        score_(std::max<std::int64_t>(1, 2 * points.n - 1), kUnknown),
        stamp_(points.n, -1) {
    if (!sums_needed()) return;
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
    std::vector<std::int32_t> name;
    result.parent = tree_.upwards(name);
    result.value.assign(result.parent.size(), 0.0);
    for (std::size_t v = points_.n; v < name.size(); ++v)
      if (name[v] >= 0) result.value[name[v]] = score(static_cast<std::int32_t>(v));
    return result;
  }

 private:
  bool sums_needed() const {
    return plan_.linkage == GrinchLinkage::average || plan_.linkage == GrinchLinkage::centroid;
  }
  bool small(std::int32_t v) const { return plan_.cap == 0 || tree_.size(v) <= plan_.cap; }
  const float* sum(std::int32_t v) const { return sum_.data() + v * points_.d; }

  void insert(std::int32_t x) {
    if (sums_needed()) {
      std::copy_n(points_.row(x), points_.d, sum_.begin() + x * points_.d);
      norm_[x] = square_[x] = dot(points_.row(x), points_.row(x), points_.d);
    }
    present_ = x + 1;
    if (x == 0) return tree_.plant(0);
    // Upwards from the nearest leaf, to the first node that likes the new point no less than its sibling.
    std::int32_t beside = near_[x * k_];
    while (tree_.parent(beside) >= 0 && small(tree_.parent(beside)) &&
           linkage(x, beside) < score(tree_.parent(beside)))
      beside = tree_.parent(beside);
    std::int32_t v = tree_.join(beside, x);
    refresh(v);
    if (!plan_.graft) return;
    // What a graft makes is above all that was made for this point before, so there are less than n of them.
    while (v >= 0 && small(v)) {
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

  // Seeks a node outside v that v, or an ancestor, and that node both like better than their siblings, and
  // makes them siblings. The node over them, or -1 if there was none.
  std::int32_t graft(std::int32_t v, std::int32_t x) {
    std::int32_t other = nearest_outside(v, x);
    if (other < 0) return -1;
    const std::int32_t meeting = meet(v, other);
    while (v != meeting && other != meeting && tree_.sibling(v) != other) {
      if (!small(v) || !small(other)) return -1;
      const double both = linkage(v, other);
      // Who likes a sibling just as well, and only for what is in it of the other, does not insist on it.
      const bool mine = preferred(both, v, meeting), others = preferred(both, other, meeting);
      if (mine && others) return move(v, other);
      if (!others) other = tree_.parent(other);
      if (!mine) v = tree_.parent(v);
    }
    return -1;
  }

  bool preferred(double value, std::int32_t v, std::int32_t meeting) {
    const std::int32_t over = tree_.parent(v);
    return value > score(over) || (value == score(over) && over == meeting);
  }

  std::int32_t move(std::int32_t v, std::int32_t other) {
    const std::int32_t left_behind = tree_.sibling(v);
    const std::int32_t spare = tree_.take_out(v);
    const std::int32_t node = tree_.join(other, v, spare);
    refresh(node);
    if (tree_.parent(left_behind) >= 0) refresh(tree_.parent(left_behind));
    restructure(left_behind, meet(left_behind, node));
    return node;
  }

  // Gives what was left behind, and each node above it up to `top`, the sibling that it likes best among
  // those of its ancestors.
  void restructure(std::int32_t z, std::int32_t top) {
    for (; z != top && tree_.parent(z) != top && small(z); z = tree_.parent(z)) {
      std::int32_t best = tree_.sibling(z);
      double most = score(tree_.parent(z));
      for (std::int32_t a = tree_.parent(z); a != top; a = tree_.parent(a)) {
        const std::int32_t candidate = tree_.sibling(a);
        if (!small(candidate)) continue;
        const double found = linkage(z, candidate);
        if (found > most) {
          most = found;
          best = candidate;
        }
      }
      if (best == tree_.sibling(z)) continue;
      tree_.exchange(tree_.sibling(z), best);
      refresh(tree_.parent(z));  // and all above, where the old sibling now is
    }
  }

  // The leaf outside v that is nearest to it, or to the new point; -1 if there is none.
  std::int32_t nearest_outside(std::int32_t v, std::int32_t x) {
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

  // The lowest node above both, or one of them.
  std::int32_t meet(std::int32_t a, std::int32_t b) const {
    std::int64_t deep_a = depth(a), deep_b = depth(b);
    for (; deep_a > deep_b; --deep_a) a = tree_.parent(a);
    for (; deep_b > deep_a; --deep_b) b = tree_.parent(b);
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

  // Puts right what is known of an inner node and of all above it.
  void refresh(std::int32_t v) {
    const std::int64_t d = points_.d;
    for (; v >= 0; v = tree_.parent(v)) {
      tree_.resize(v);
      score_[v] = kUnknown;
      if (!sums_needed()) continue;
      const std::int32_t a = tree_.left(v), b = tree_.right(v);
      for (std::int64_t j = 0; j < d; ++j) sum_[v * d + j] = sum_[a * d + j] + sum_[b * d + j];
      norm_[v] = dot(sum(v), sum(v), d);
      square_[v] = square_[a] + square_[b];
    }
  }

  // The linkage of a node's children.
  double score(std::int32_t v) {
    if (std::isnan(score_[v])) score_[v] = linkage(tree_.left(v), tree_.right(v));
    return score_[v];
  }

  double linkage(std::int32_t v, std::int32_t w) const {
    if (!sums_needed()) return of_pairs(v, w);
    const double a = tree_.size(v), b = tree_.size(w);
    const double product = dot(sum(v), sum(w), points_.d);
    if (plan_.linkage == GrinchLinkage::average)
      return plan_.dot ? product / (a * b) : 2 * product / (a * b) - square_[v] / a - square_[w] / b;
    if (!plan_.dot) return 2 * product / (a * b) - norm_[v] / (a * a) - norm_[w] / (b * b);
    const double lengths = std::sqrt(norm_[v] * norm_[w]);
    return lengths > 0 ? product / lengths : 0;
  }

  double of_pairs(std::int32_t v, std::int32_t w) const {
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
  std::vector<double> score_;        // the linkage of a node's children, NaN until it is asked for
  std::vector<float> sum_;           // of a node's points,
  std::vector<double> norm_;         // that sum's square
  std::vector<double> square_;       // and the sum of their squares
  std::vector<std::int64_t> stamp_;  // of a leaf, when it was last seen below a node
  std::int64_t time_ = 0;
  std::int32_t present_ = 0;
};

}  // namespace

Grinch grinch(const Points<float>& points, std::span<const std::int32_t> near, std::int64_t k,
              const GrinchPlan& plan, const Report& report) {
  return Grower(points, near, k, plan).run(report);
}

}  // namespace agglo
