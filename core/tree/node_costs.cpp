#include "tree/node_costs.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "simd/center_products.hpp"
#include "tree/tree.hpp"

namespace agglo {
namespace {

// Subtrees of up to kTask leaves are walked by any thread, those of kLeast or more as tasks of their own.
// What a node costs is a function of its children in a fixed order, so neither number can be seen in the
// result.
constexpr std::int32_t kTask = 16384;
constexpr std::int32_t kLeast = 1024;
constexpr std::int64_t kOften = 1024;  // paths between reports

// The points below a node, each with a bound on its distance to the node's mean.
class Members {
 public:
  using Leaves = std::span<const std::int32_t>;

  void clear() {
    heap_.clear();
    drift_ = 0;
  }

  // The nearest of all points and its squared distance, which squared(leaf) says, after the mean has moved by
  // `distance` and those of `some` and `others` have come.
  template <class Squared>
  std::pair<std::int32_t, double> nearest(double distance, Leaves some, Leaves others,
                                          const Squared& squared) {
    drift_ += distance;
    seen_.clear();
    std::pair<double, std::int32_t> best{std::numeric_limits<double>::infinity(), 0};
    double reach = best.first;  // whatever is as near as the best has no larger bound
    const auto look = [&](std::int32_t leaf) {
      const double square = squared(leaf), far = std::sqrt(square);
      seen_.push_back({far + drift_, leaf});
      if (std::pair(square, leaf) >= best) return;
      best = {square, leaf};
      reach = far + kRounding * (far + drift_);
    };
    std::for_each(some.begin(), some.end(), look);
    std::for_each(others.begin(), others.end(), look);
    while (!heap_.empty() && heap_.front().first - drift_ <= reach) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const std::int32_t leaf = heap_.back().second;
      heap_.pop_back();
      look(leaf);
    }
    const bool many = seen_.size() > heap_.size() / 8;
    for (const Entry& entry : seen_) {
      heap_.push_back(entry);
      if (!many) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    if (many) std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    return {best.second, best.first};
  }

 private:
  // Distances and their sums are rounded; a bound that is off by so little must not exclude a point.
  static constexpr double kRounding = 1e-9;

  using Entry = std::pair<double, std::int32_t>;  // distance when last seen plus the drift until then; leaf
  std::vector<Entry> heap_, seen_;                // the smallest bound first
  double drift_ = 0;                              // how far the mean has moved in all
};

struct Cluster {
  double number = 0, within = 0;  // points, and their squared distances to the mean
  std::vector<double> mean;
};

// A path of largest children on its way up.
struct Path {
  std::int32_t top, node;      // where it ends, where it is
  Cluster cluster;             // the node, and those of its siblings that have been taken in
  std::int64_t next;           // the first child of its parent that has not
  std::vector<double> before;  // the mean of the node alone
  bool fresh;                  // whether `members` does not know those of the node yet
  Members members;
};

template <class T>
class Walk {
 public:
  Walk(const Points<T>& points, std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
       Centers centers)
      : points_(points),
        parent_(parent),
        size_(size),
        leaves_(points.n),
        below_(below(parent, size, points.n)),
        largest_(largest_children(below_, size)),
        done_(parent.size() - static_cast<std::size_t>(points.n), -1),
        among_points_(centers == Centers::points) {
    found_.costs.assign(parent.size(), 0.0);
    if (!among_points_) return;
    found_.centers.resize(parent.size());
    for (std::int64_t i = 0; i < leaves_; ++i) found_.centers[i] = static_cast<std::int32_t>(i);
  }

  Costs run(ThreadPool& pool, const Report& report) {
    const auto root = static_cast<std::int32_t>(parent_.size()) - 1;
    std::vector<std::int32_t> tasks;
    for (auto v = static_cast<std::int32_t>(leaves_); v < root; ++v)
      if (size_[v] >= kLeast && size_[v] <= kTask && size_[parent_[v]] > kTask) tasks.push_back(v);
    clusters_.resize(tasks.size());
    std::vector<std::vector<Path>> paths(pool.size());
    pool.run(
        static_cast<std::int64_t>(tasks.size()),
        [&](std::int64_t i, int worker) { clusters_[i] = walk(tasks[i], paths[worker], {}); }, report);
    for (std::size_t i = 0; i < tasks.size(); ++i) done_[tasks[i] - leaves_] = static_cast<std::int32_t>(i);
    if (root >= leaves_) walk(root, paths[0], report);
    return std::move(found_);
  }

 private:
  // `top` as a cluster, once the costs of it and of all below are found. Paths that wait for one another are
  // stacked; each is of at most half the leaves of the one that waits for it.
  Cluster walk(std::int32_t top, std::vector<Path>& stack, const Report& report) {
    std::size_t depth = 0;
    std::int64_t steps = 0;
    for (std::int32_t waiting = top;;) {
      if (waiting >= 0) {
        if (stack.size() == depth) stack.emplace_back();
        begin(stack[depth++], waiting);
      } else {
        Path& finished = stack[--depth];
        if (depth == 0) return std::move(finished.cluster);
        absorb(stack[depth - 1].cluster, finished.cluster);
      }
      if (report && ++steps % kOften == 0) report(stack[0].next, static_cast<std::int64_t>(parent_.size()));
      waiting = climb(stack[depth - 1]);
    }
  }

  // Starts the path that ends at `top` from its lowest node: a leaf, or one that a task has done.
  void begin(Path& path, std::int32_t top) {
    std::int32_t node = top;
    while (node >= leaves_ && done_[node - leaves_] < 0) node = largest_[node - leaves_];
    if (node < leaves_) {
      path.cluster.number = 1;
      path.cluster.within = 0;
      path.cluster.mean.assign(points_.row(node), points_.row(node) + points_.d);
    } else {
      path.cluster = clusters_[done_[node - leaves_]];
    }
    path.top = top;
    path.fresh = true;
    path.members.clear();
    reach(path, node);
  }

  void reach(Path& path, std::int32_t node) {
    path.node = node;
    if (node == path.top) return;
    path.next = below_.indptr[parent_[node] - leaves_];
    if (among_points_) path.before = path.cluster.mean;
  }

  // Goes up until a child is in the way that must be walked first, and returns it, or -1 at the top.
  std::int32_t climb(Path& path) {
    while (path.node != path.top) {
      const std::int32_t v = parent_[path.node];
      const std::int64_t last = below_.indptr[v - leaves_ + 1];
      while (path.next < last) {
        const std::int32_t child = below_.children[path.next++];
        if (child == path.node) continue;
        if (child < leaves_)
          absorb(path.cluster, points_.row(child), 1, 0);
        else if (const std::int32_t task = done_[child - leaves_]; task >= 0)
          absorb(path.cluster, clusters_[task]);
        else
          return child;
      }
      found_.costs[v] = path.cluster.within;
      if (among_points_) choose(path, v);
      reach(path, v);
    }
    return -1;
  }

  void absorb(Cluster& cluster, const Cluster& other) {
    absorb(cluster, other.mean.data(), other.number, other.within);
  }

  template <class X>
  void absorb(Cluster& cluster, const X* mean, double number, double within) {
    const double share = number / (cluster.number + number);
    const double square = move_center(cluster.mean.data(), mean, share, points_.d);
    cluster.within += within + square * cluster.number * share;
    cluster.number += number;
  }

  // The best point of v, at which the path has arrived.
  void choose(Path& path, std::int32_t v) {
    const Members::Leaves all(below_.order.data() + below_.start[v], static_cast<std::size_t>(size_[v]));
    const std::size_t first = path.fresh ? 0 : below_.start[path.node] - below_.start[v];
    const std::size_t known = path.fresh ? 0 : size_[path.node];
    const double* mean = path.cluster.mean.data();
    const auto [leaf, square] = path.members.nearest(
        std::sqrt(squared_distance_to(mean, path.before.data(), points_.d)), all.first(first),
        all.subspan(first + known),
        [&](std::int32_t i) { return squared_distance_to(mean, points_.row(i), points_.d); });
    path.fresh = false;
    found_.centers[v] = leaf;
    found_.costs[v] += path.cluster.number * square;
  }

  Points<T> points_;
  std::span<const std::int32_t> parent_, size_;
  std::int64_t leaves_;
  Below below_;
  std::vector<std::int32_t> largest_;
  std::vector<std::int32_t> done_;  // the task that has done an inner node, or -1
  std::vector<Cluster> clusters_;   // by task
  bool among_points_;
  Costs found_;
};

}  // namespace

template <class T>
Costs node_costs(const Points<T>& points, std::span<const std::int32_t> parent,
                 std::span<const std::int32_t> size, Centers centers, ThreadPool& pool,
                 const Report& report) {
  return Walk<T>(points, parent, size, centers).run(pool, report);
}

#define AGGLO_NODE_COSTS(T)                                                                                 \
  template Costs node_costs(const Points<T>&, std::span<const std::int32_t>, std::span<const std::int32_t>, \
                            Centers, ThreadPool&, const Report&)
AGGLO_NODE_COSTS(float);
AGGLO_NODE_COSTS(double);
AGGLO_NODE_COSTS(Half);

}  // namespace agglo
