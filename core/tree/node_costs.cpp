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

// A subtree with kMinTask to kMaxTask leaves is a parallel task if its parent has more than kMaxTask leaves.
// The children of a node are always merged in the same order, so the task sizes do not change the result.
constexpr std::int32_t kMaxTask = 16384;
constexpr std::int32_t kMinTask = 1024;
constexpr std::int64_t kReportInterval = 1024;  // number of paths between two reports

// A heap of the leaves of a node. On top is the leaf with the smallest lower bound on its distance to the
// mean of the node.
class NearestLeaf {
 public:
  using Leaves = std::span<const std::int32_t>;

  void clear() {
    heap_.clear();
    drift_ = 0;
  }

  // Adds the leaves `some` and `others` to the heap. Since the last call, the mean has moved by `distance`.
  // Returns the leaf nearest to the mean and its squared distance.
  // squared(leaf) returns the squared distance of a leaf to the mean.
  template <class Squared>
  std::pair<std::int32_t, double> find(double distance, Leaves some, Leaves others, const Squared& squared) {
    drift_ += distance;
    seen_.clear();
    std::pair<double, std::int32_t> best{std::numeric_limits<double>::infinity(), 0};
    double reach = best.first;  // a leaf with a larger lower bound is not the nearest
    const auto compare = [&](std::int32_t leaf) {
      const double square = squared(leaf), far = std::sqrt(square);
      seen_.push_back({far + drift_, leaf});
      if (std::pair(square, leaf) >= best) return;
      best = {square, leaf};
      reach = far + kRounding * (far + drift_);
    };
    std::for_each(some.begin(), some.end(), compare);
    std::for_each(others.begin(), others.end(), compare);
    while (!heap_.empty() && heap_.front().first - drift_ <= reach) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const std::int32_t leaf = heap_.back().second;
      heap_.pop_back();
      compare(leaf);
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
  // The margin for rounding errors. Without it, rounding could exclude the nearest leaf.
  static constexpr double kRounding = 1e-9;

  using Entry = std::pair<double, std::int32_t>;  // (distance + drift_ at the last comparison, leaf)
  std::vector<Entry> heap_, seen_;                // heap_ has the smallest lower bound on top
  double drift_ = 0;                              // total distance that the mean has moved
};

struct Cluster {
  double number = 0, within = 0;  // number of points, and sum of squared distances of the points to the mean
  std::vector<double> mean;
};

// A path in which each node is the largest child of the next node. It is traversed from bottom to top.
struct Path {
  std::int32_t top, node;      // the top node of the path, and the current node
  Cluster cluster;             // the current node, merged with those siblings that have been read so far
  std::int64_t next;           // index of the next sibling to merge
  std::vector<double> before;  // the mean of the current node before siblings are merged
  bool is_new;                 // whether the leaves of the current node are not in `nearest` yet
  NearestLeaf nearest;
};

class Walk {
 public:
  Walk(const AnyPoints& points, std::span<const std::int32_t> parent, std::span<const std::int32_t> size,
       CenterKind centers)
      : points_(points),
        point_kernels_(center_kernels(points.type)),
        mean_kernels_(center_kernels(NumberType::float64)),
        parent_(parent),
        size_(size),
        leaves_(points.n),
        tree_(index_descendants(parent, size, points.n)),
        largest_(find_largest_children(tree_, size)),
        task_(parent.size() - static_cast<std::size_t>(points.n), -1),
        among_points_(centers == CenterKind::points) {
    found_.costs.assign(parent.size(), 0.0);
    if (!among_points_) return;
    found_.centers.resize(parent.size());
    for (std::int64_t i = 0; i < leaves_; ++i) found_.centers[i] = static_cast<std::int32_t>(i);
  }

  NodeCosts run(ThreadPool& pool, const Report& report) {
    const auto root = static_cast<std::int32_t>(parent_.size()) - 1;
    std::vector<std::int32_t> tasks;
    for (auto v = static_cast<std::int32_t>(leaves_); v < root; ++v)
      if (size_[v] >= kMinTask && size_[v] <= kMaxTask && size_[parent_[v]] > kMaxTask) tasks.push_back(v);
    clusters_.resize(tasks.size());
    std::vector<std::vector<Path>> paths(pool.size());
    pool.run(
        static_cast<std::int64_t>(tasks.size()),
        [&](std::int64_t i, int worker) { clusters_[i] = walk(tasks[i], paths[worker], {}); }, report);
    for (std::size_t i = 0; i < tasks.size(); ++i) task_[tasks[i] - leaves_] = static_cast<std::int32_t>(i);
    if (root >= leaves_) walk(root, paths[0], report);
    return std::move(found_);
  }

 private:
  // Computes the costs of `top` and all its descendants. Returns the cluster of `top`.
  // `stack` contains the unfinished paths. Each path has at most half as many leaves as the previous path.
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
        merge(stack[depth - 1].cluster, finished.cluster);
      }
      if (report && ++steps % kReportInterval == 0)
        report(stack[0].next, static_cast<std::int64_t>(parent_.size()));
      waiting = climb(stack[depth - 1]);
    }
  }

  // Starts the path that ends at `top`. The lowest node of the path is a leaf or the root of a finished task.
  void begin(Path& path, std::int32_t top) {
    std::int32_t node = top;
    while (node >= leaves_ && task_[node - leaves_] < 0) node = largest_[node - leaves_];
    if (node < leaves_) {
      path.cluster.number = 1;
      path.cluster.within = 0;
      path.cluster.mean.resize(points_.d);
      widen_row(points_, node, path.cluster.mean.data());
    } else {
      path.cluster = clusters_[task_[node - leaves_]];
    }
    path.top = top;
    path.is_new = true;
    path.nearest.clear();
    move_to(path, node);
  }

  // Makes `node` the current node of the path. All children of `node` must have been merged.
  void move_to(Path& path, std::int32_t node) {
    path.node = node;
    if (node == path.top) return;
    path.next = tree_.indptr[parent_[node] - leaves_];
    if (among_points_) path.before = path.cluster.mean;
  }

  // Walks up to the top of the path. Returns -1 at the top.
  // If the cost of a sibling must be computed first, stops and returns this sibling.
  std::int32_t climb(Path& path) {
    while (path.node != path.top) {
      const std::int32_t v = parent_[path.node];
      const std::int64_t last = tree_.indptr[v - leaves_ + 1];
      while (path.next < last) {
        const std::int32_t child = tree_.children[path.next++];
        if (child == path.node) continue;
        if (child < leaves_)
          merge(path.cluster, point_kernels_, points_.row(child), 1, 0);
        else if (const std::int32_t task = task_[child - leaves_]; task >= 0)
          merge(path.cluster, clusters_[task]);
        else
          return child;
      }
      found_.costs[v] = path.cluster.within;
      if (among_points_) set_center(path, v);
      move_to(path, v);
    }
    return -1;
  }

  void merge(Cluster& cluster, const Cluster& other) {
    merge(cluster, mean_kernels_, other.mean.data(), other.number, other.within);
  }

  void merge(Cluster& cluster, const CenterKernels& kernels, const void* mean, double number, double within) {
    const double share = number / (cluster.number + number);
    const double square = kernels.move(cluster.mean.data(), mean, share, points_.d);
    cluster.within += within + square * cluster.number * share;
    cluster.number += number;
  }

  // Finds the center of v among the points of v. Node v is the parent of the current node of the path.
  void set_center(Path& path, std::int32_t v) {
    const NearestLeaf::Leaves all(tree_.order.data() + tree_.start[v], static_cast<std::size_t>(size_[v]));
    const std::size_t first = path.is_new ? 0 : tree_.start[path.node] - tree_.start[v];
    const std::size_t known = path.is_new ? 0 : size_[path.node];
    const double* mean = path.cluster.mean.data();
    const auto [leaf, square] = path.nearest.find(
        std::sqrt(mean_kernels_.squared_distance(mean, path.before.data(), points_.d)), all.first(first),
        all.subspan(first + known),
        [&](std::int32_t i) { return point_kernels_.squared_distance(mean, points_.row(i), points_.d); });
    path.is_new = false;
    found_.centers[v] = leaf;
    found_.costs[v] += path.cluster.number * square;
  }

  AnyPoints points_;
  CenterKernels point_kernels_, mean_kernels_;
  std::span<const std::int32_t> parent_, size_;
  std::int64_t leaves_;
  Descendants tree_;
  std::vector<std::int32_t> largest_;
  std::vector<std::int32_t> task_;  // for each inner node, the finished task whose root it is, or -1
  std::vector<Cluster> clusters_;   // the cluster of the root of each task
  bool among_points_;
  NodeCosts found_;
};

}  // namespace

NodeCosts compute_node_costs(const AnyPoints& points, std::span<const std::int32_t> parent,
                             std::span<const std::int32_t> size, CenterKind centers, ThreadPool& pool,
                             const Report& report) {
  return Walk(points, parent, size, centers).run(pool, report);
}

}  // namespace agglo
