#include "paper/perch.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

#include "paper/growing_tree.hpp"
#include "simd/dot.hpp"

namespace agglo::paper {
namespace {

constexpr std::size_t kSample = 4;  // number of points per node that a quick test compares
constexpr double kFar = std::numeric_limits<double>::infinity();

using Ranked = std::pair<double, std::int32_t>;  // a distance and a node
using Closest = std::priority_queue<Ranked, std::vector<Ranked>, std::greater<>>;

class PerchBuilder {
 public:
  PerchBuilder(const Points<float>& points, std::span<const std::int32_t> nearest, const PerchPlan& plan)
      : points_(points), nearest_(nearest), plan_(plan), tree_(points.n) {
    const std::int64_t nodes = std::max<std::int64_t>(1, 2 * points.n - 1);
    if (plan.search != PerchSearch::given || !plan.exact_masking || plan.max_leaves > 0) {
      low_.resize(nodes * points.d);
      high_.resize(nodes * points.d);
    }
    if (plan.max_leaves > 0) {
      members_.resize(nodes);
      home_.resize(points.n);
    }
  }

  std::vector<std::int32_t> run(const Report& report) {
    for (std::int64_t i = 0; i < points_.n; ++i) {
      insert(static_cast<std::int32_t>(i));
      if (report) report(i, points_.n);
    }
    return to_parents();
  }

 private:
  void insert(std::int32_t x) {
    if (!low_.empty()) std::copy_n(points_.row(x), points_.d, low_.begin() + x * points_.d);
    if (!low_.empty()) std::copy_n(points_.row(x), points_.d, high_.begin() + x * points_.d);
    if (collapses()) {
      members_[x] = {x};
      home_[x] = x;
    }
    ++leaves_;
    if (x == 0) return tree_.set_root(0);
    const std::int32_t beside = find_leaf(x);
    const std::int32_t over = tree_.insert_beside(beside, x);
    for (std::int32_t v = over; v >= 0; v = tree_.parent(v)) {
      tree_.resize(v);
      if (!low_.empty()) extend_box(v, x, v == over);
    }
    queue_collapse(over);
    rotate_masked(beside);
    if (plan_.balance) rotate_to_balance(tree_.parent(x));
    if (collapses() && leaves_ > plan_.max_leaves) collapse();
  }

  // Finds the leaf beside which x is inserted.
  std::int32_t find_leaf(std::int32_t x) const {
    if (plan_.search == PerchSearch::given) return collapses() ? home_[nearest_[x]] : nearest_[x];
    return plan_.search == PerchSearch::boxes ? search_best_first(x) : search_beam(x);
  }

  // Walks up from v and rotates masked nodes. The aunt of a node is the sibling of its parent.
  // A rotation swaps the sibling and the aunt of a node. A node is masked if all its points are closer to all
  // points of the aunt than to any point of the sibling.
  // The walk ends at the first inner node that is not masked.
  void rotate_masked(std::int32_t v) {
    while (has_aunt(v)) {
      if (is_masked(v))
        rotate(v);
      else if (!tree_.is_leaf(v))
        return;
      v = tree_.parent(v);
    }
  }

  // Walks up from v to the root. Rotates nodes if this makes the tree shallower.
  void rotate_to_balance(std::int32_t v) {
    while (v >= 0 && tree_.parent(v) >= 0) {
      const std::int32_t sibling = tree_.sibling(v);
      const bool swap = tree_.size(sibling) < tree_.size(v);
      for (const std::int32_t w : {swap ? sibling : v, swap ? v : sibling}) {
        if (!has_aunt(w) || !gets_shallower(w) || !is_mixed(w)) continue;
        rotate(w);
        v = w;
        break;
      }
      v = tree_.parent(v);
    }
  }

  bool has_aunt(std::int32_t v) const { return tree_.parent(v) >= 0 && tree_.parent(tree_.parent(v)) >= 0; }
  std::int32_t aunt(std::int32_t v) const { return tree_.sibling(tree_.parent(v)); }

  void rotate(std::int32_t v) {
    const std::int32_t over = tree_.parent(v);
    tree_.exchange(tree_.sibling(v), aunt(v));
    tree_.resize(over);
    if (!low_.empty()) fit_box(over);
    queue_collapse(over);
    queue_collapse(tree_.parent(over));
  }

  // Returns whether v is masked. This is so if each pair of points of v and the aunt is closer than each pair
  // of points of v and the sibling.
  bool is_masked(std::int32_t v) const {
    const std::int32_t sibling = tree_.sibling(v), other = aunt(v);
    if (!plan_.exact_masking) return box_distance(v, other, true) < box_distance(v, sibling, false);
    // Compare a few pairs of points first. These pairs nearly always show that v is not masked.
    const Sample mine(*this, v);
    double least = kFar, most = 0;
    extremes(mine, Sample(*this, sibling), least, most);
    double ignored = kFar, reach = 0;
    extremes(mine, Sample(*this, other), ignored, reach);
    if (reach >= least) return false;
    return each_pair(v, sibling,
                     [&](double d) {
                       least = std::min(least, d);
                       return reach < least;
                     }) &&
           each_pair(v, other, [&](double d) { return d < least; });
  }

  bool gets_shallower(std::int32_t v) const {
    const std::int64_t over = tree_.size(tree_.parent(v)), other = tree_.size(aunt(v));
    return std::abs(over - other - 2 * tree_.size(v)) < std::abs(over - other);
  }

  // Returns whether some point of v is closer to a point of the aunt than to a point of the sibling.
  // If so, the aunt may replace the sibling. With exact_masking, only a few points are compared.
  bool is_mixed(std::int32_t v) const {
    const std::int32_t sibling = tree_.sibling(v), other = aunt(v);
    if (!plan_.exact_masking) return box_distance(v, sibling, true) > box_distance(v, other, false);
    const Sample mine(*this, v);
    double least = kFar, most = 0, ignored = kFar, unused = 0;
    extremes(mine, Sample(*this, sibling), ignored, most);
    extremes(mine, Sample(*this, other), least, unused);
    return most > least;
  }

  // The first few points of a node.
  struct Sample {
    std::array<std::int32_t, kSample> points;
    std::size_t count = 0;

    Sample(const PerchBuilder& perch, std::int32_t v) {
      perch.each_point(v, [this](std::int32_t x) {
        points[count++] = x;
        return count < kSample;
      });
    }
  };

  void extremes(const Sample& a, const Sample& b, double& least, double& most) const {
    for (std::size_t i = 0; i < a.count; ++i)
      for (std::size_t j = 0; j < b.count; ++j) {
        const double square = distance(a.points[i], b.points[j]);
        least = std::min(least, square);
        most = std::max(most, square);
      }
  }

  double distance(std::int32_t x, std::int32_t y) const {  // squared distance of two points
    return squared_distance(points_.row(x), points_.row(y), points_.d);
  }

  template <class Each>
  bool each_point(std::int32_t v, const Each& each) const {
    return tree_.leaves(v, [&](std::int32_t leaf) {
      if (!collapses()) return each(leaf);
      for (const std::int32_t x : members_[leaf])
        if (!each(x)) return false;
      return true;
    });
  }

  // Returns whether holds(squared distance) is true for all pairs of a point of v and a point of w.
  template <class Holds>
  bool each_pair(std::int32_t v, std::int32_t w, const Holds& holds) const {
    return each_point(v, [&](std::int32_t x) {
      return each_point(w, [&](std::int32_t y) { return holds(distance(x, y)); });
    });
  }

  // Returns a bound on the squared distance between any two points of v and w, computed from their bounding
  // boxes. If `largest` is true, it is an upper bound, otherwise a lower bound.
  double box_distance(std::int32_t v, std::int32_t w, bool largest) const {
    const float *low = low_.data() + v * points_.d, *high = high_.data() + v * points_.d;
    const float *low2 = low_.data() + w * points_.d, *high2 = high_.data() + w * points_.d;
    double sum = 0;
    for (std::int64_t j = 0; j < points_.d; ++j) {
      const float over = high[j] - low2[j], under = high2[j] - low[j];
      const float gap = largest ? std::max(over, under) : std::max(0.0f, std::max(-over, -under));
      sum += static_cast<double>(gap) * gap;
    }
    return sum;
  }

  // Extends the bounding box of v to contain point x.
  void extend_box(std::int32_t v, std::int32_t x, bool is_new) {
    if (is_new) return fit_box(v);
    float *low = low_.data() + v * points_.d, *high = high_.data() + v * points_.d;
    const float* row = points_.row(x);
    for (std::int64_t j = 0; j < points_.d; ++j) {
      low[j] = std::min(low[j], row[j]);
      high[j] = std::max(high[j], row[j]);
    }
  }

  // Computes the bounding box of v from the boxes of its children.
  void fit_box(std::int32_t v) {
    const std::int64_t d = points_.d, a = tree_.left(v) * d, b = tree_.right(v) * d;
    for (std::int64_t j = 0; j < d; ++j) {
      low_[v * d + j] = std::min(low_[a + j], low_[b + j]);
      high_[v * d + j] = std::max(high_[a + j], high_[b + j]);
    }
  }

  // Returns a lower bound on the squared distance of x to the points of v. For a leaf, the bound is exact.
  double lower_bound(std::int32_t x, std::int32_t v) const {
    if (!tree_.is_leaf(v)) return box_distance(x, v, false);
    double least = kFar;
    each_point(v, [&](std::int32_t y) {
      least = std::min(least, distance(x, y));
      return true;
    });
    return least;
  }

  std::int32_t search_best_first(std::int32_t x) const {
    Closest waiting;
    waiting.emplace(0.0, tree_.root());
    while (!tree_.is_leaf(waiting.top().second)) {
      const std::int32_t v = waiting.top().second;
      waiting.pop();
      for (const std::int32_t child : {tree_.left(v), tree_.right(v)})
        waiting.emplace(lower_bound(x, child), child);
    }
    return waiting.top().second;
  }

  // Finds a leaf near x by beam search. At each level of the tree, only the `beam` closest nodes are kept.
  // The search ends when it has found `beam` leaves or no nodes remain.
  std::int32_t search_beam(std::int32_t x) const {
    Ranked best{kFar, -1};
    std::vector<std::int32_t> level{tree_.root()};
    std::int64_t leaves = 0;
    while (!level.empty() && leaves < plan_.beam) {
      std::vector<Ranked> next;
      for (const std::int32_t v : level) {
        if (tree_.is_leaf(v)) {
          best = std::min(best, {lower_bound(x, v), v});
          ++leaves;
        } else {
          for (const std::int32_t child : {tree_.left(v), tree_.right(v)})
            next.emplace_back(lower_bound(x, child), child);
        }
      }
      if (static_cast<std::int64_t>(next.size()) > plan_.beam) {
        std::nth_element(next.begin(), next.begin() + plan_.beam, next.end());
        next.resize(plan_.beam);
      }
      level.clear();
      for (const Ranked& entry : next) level.push_back(entry.second);
    }
    return best.second;
  }

  bool collapses() const { return plan_.max_leaves > 0; }

  // If both children of v are leaves, adds v to the queue of nodes that can become one leaf.
  // The queue is sorted by the largest distance between points of the two leaves.
  void queue_collapse(std::int32_t v) {
    if (!collapses() || tree_.is_leaf(v)) return;
    if (!tree_.is_leaf(tree_.left(v)) || !tree_.is_leaf(tree_.right(v))) return;
    collapse_queue_.emplace(box_distance(tree_.left(v), tree_.right(v), true), v);
  }

  // Merges the two closest sibling leaves into one leaf.
  void collapse() {
    for (;;) {
      const auto [reach, v] = collapse_queue_.top();
      collapse_queue_.pop();
      if (tree_.is_leaf(v)) continue;
      const std::int32_t a = tree_.left(v), b = tree_.right(v);
      if (!tree_.is_leaf(a) || !tree_.is_leaf(b) || reach != box_distance(a, b, true)) continue;
      members_[v] = std::move(members_[a]);
      members_[v].insert(members_[v].end(), members_[b].begin(), members_[b].end());
      for (const std::int32_t x : members_[v]) home_[x] = v;
      members_[b].clear();
      tree_.make_leaf(v);
      --leaves_;
      if (tree_.parent(v) >= 0) queue_collapse(tree_.parent(v));
      return;
    }
  }

  std::vector<std::int32_t> to_parents() const {
    std::vector<std::int32_t> new_id;
    std::vector<std::int32_t> parent = tree_.to_parents(new_id);
    if (collapses())
      for (std::int64_t x = 0; x < points_.n; ++x)
        if (home_[x] != x) parent[x] = new_id[home_[x]];
    return parent;
  }

  const Points<float> points_;
  const std::span<const std::int32_t> nearest_;
  const PerchPlan plan_;
  GrowingTree tree_;
  std::vector<float> low_, high_;                   // bounding box of each node; empty if not needed
  std::vector<std::vector<std::int32_t>> members_;  // points of each leaf; empty if max_leaves is 0
  std::vector<std::int32_t> home_;                  // leaf of each point
  std::int64_t leaves_ = 0;
  Closest collapse_queue_;
};

}  // namespace

std::vector<std::int32_t> build_perch_tree(const Points<float>& points, std::span<const std::int32_t> nearest,
                                           const PerchPlan& plan, const Report& report) {
  return PerchBuilder(points, nearest, plan).run(report);
}

}  // namespace agglo::paper
