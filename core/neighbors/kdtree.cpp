#include "neighbors/kdtree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "neighbors/lists.hpp"
#include "points/expand.hpp"
#include "points/order.hpp"

namespace agglo {
namespace {

// How it works. Of equal points only one is searched for. The images of the points, in float64, are halved
// again and again by the coordinate that spreads most, down to leaves. A point looks into the leaves in the
// order of how close their boxes are, as long as a box may hold something as close as its k-th so far. Images
// only exclude: what they do not exclude is compared as the exact search does it, ties and all.

constexpr std::int64_t kLeaf = 16;   // points in a leaf, at most
constexpr std::int64_t kRows = 256;  // queries in a chunk of work, close to each other
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Node {
  std::int64_t begin, end;  // places
  std::int64_t right = 0;   // child; the left one is the next node; 0: a leaf
  double square = 0;        // the largest squared length
};

template <class T>
class Tree {
 public:
  Tree(const Space<T>& space, std::span<const std::int32_t> ids, bool similarity)
      : space_(space),
        d_(space.d()),
        similarity_(similarity),
        slack_(static_cast<double>(d_ + 16) * std::numeric_limits<double>::epsilon()),
        ids_(ids.begin(), ids.end()) {
    const std::int64_t n = size();
    std::vector<double> images(n * d_);
    for (std::int64_t p = 0; p < n; ++p) space.image(ids[p], images.data() + p * d_);
    std::vector<std::int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    split(images, order, 0, n);
    // Leaf by leaf, column by column.
    images_.resize(n * d_);
    for (const Node& node : nodes_) {
      if (node.right != 0) continue;
      double* out = images_.data() + node.begin * d_;
      for (std::int64_t c = 0; c < d_; ++c)
        for (std::int64_t p = node.begin; p < node.end; ++p) *out++ = images[order[p] * d_ + c];
    }
    for (std::int64_t p = 0; p < n; ++p) ids_[p] = ids[order[p]];
  }

  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  std::int32_t id(std::int64_t place) const { return ids_[place]; }

  // The k closest of the point at a place, closest first.
  class Query {
   public:
    Query(const Tree& tree, std::int64_t k) : tree_(tree), k_(k), image_(tree.d_) {}

    std::span<const Candidate> closest(std::int64_t place) {
      const std::int32_t i = tree_.ids_[place];
      tree_.space_.image(i, image_.data());
      return closest(place, tree_.space_.square(i),
                     [&](std::int32_t j) { return tree_.space_.closeness(i, j); });
    }

    std::span<const Candidate> closest(const Guest<T>& guest) {
      tree_.space_.image(guest, image_.data());
      return closest(-1, guest.square, [&](std::int32_t j) { return tree_.space_.closeness(guest, j); });
    }

   private:
    // Of the point whose image is at hand, which is at a place or, if that is -1, at none.
    template <class Closeness>
    std::span<const Candidate> closest(std::int64_t place, double square, const Closeness& closeness) {
      place_ = place;
      square_ = square;
      best_.clear();
      look(0, tree_.bound(image_.data(), square_, 0), closeness);
      std::sort_heap(best_.begin(), best_.end());
      return best_;
    }

    double bar() const {
      return static_cast<std::int64_t>(best_.size()) < k_ ? -kInfinity : best_.front().closeness;
    }

    template <class Closeness>
    void look(std::int64_t node, double bound, const Closeness& closeness) {
      if (bound < bar()) return;
      const Node& here = tree_.nodes_[node];
      if (here.right == 0) return compare(here, closeness);
      const double left = tree_.bound(image_.data(), square_, node + 1),
                   right = tree_.bound(image_.data(), square_, here.right);
      // Of two boxes that both hold the point, the one that it is in comes first by being closer or equal.
      if (left >= right) {
        look(node + 1, left, closeness);
        look(here.right, right, closeness);
      } else {
        look(here.right, right, closeness);
        look(node + 1, left, closeness);
      }
    }

    template <class Closeness>
    void compare(const Node& leaf, const Closeness& closeness) {
      const std::int64_t count = leaf.end - leaf.begin;
      double squares[kLeaf] = {};
      const double* column = tree_.images_.data() + leaf.begin * tree_.d_;
      for (std::int64_t c = 0; c < tree_.d_; ++c, column += count)
        for (std::int64_t s = 0; s < count; ++s)
          squares[s] += (column[s] - image_[c]) * (column[s] - image_[c]);
      for (std::int64_t s = 0; s < count; ++s) {
        const std::int64_t other = leaf.begin + s;
        if (other == place_ || tree_.upper(square_, leaf.square, squares[s]) < bar()) continue;
        const std::int32_t j = tree_.ids_[other];
        const Candidate candidate{closeness(j), j};
        if (static_cast<std::int64_t>(best_.size()) == k_) {
          if (!(candidate < best_.front())) continue;
          std::pop_heap(best_.begin(), best_.end());
          best_.back() = candidate;
        } else {
          best_.push_back(candidate);
        }
        std::push_heap(best_.begin(), best_.end());
      }
    }

    const Tree& tree_;
    const std::int64_t k_;
    std::int64_t place_ = 0;
    double square_ = 0;
    std::vector<double> image_;
    std::vector<Candidate> best_;  // a heap, the last of them on top
  };

 private:
  // Closeness of two images at this squared distance, and what roundings may add: never less than it is.
  // x.y = (|x|^2 + |y|^2 - |x - y|^2) / 2
  double upper(double square, double other, double squared_distance) const {
    return ((similarity_ ? square + other : 0.0) - squared_distance) / 2 + slack_ * (square + other);
  }

  double bound(const double* image, double square, std::int64_t node) const {
    const double* low = boxes_.data() + node * 2 * d_;
    const double* high = low + d_;
    double distance = 0;
    for (std::int64_t c = 0; c < d_; ++c) {
      const double outside = std::max({low[c] - image[c], image[c] - high[c], 0.0});
      distance += outside * outside;
    }
    return upper(square, nodes_[node].square, distance);
  }

  void split(const std::vector<double>& images, std::vector<std::int32_t>& order, std::int64_t begin,
             std::int64_t end) {
    const std::size_t at = nodes_.size();
    nodes_.push_back({begin, end});
    boxes_.resize(boxes_.size() + 2 * d_);
    double* low = boxes_.data() + at * 2 * d_;
    double* high = low + d_;
    std::fill_n(low, d_, kInfinity);
    std::fill_n(high, d_, -kInfinity);
    for (std::int64_t p = begin; p < end; ++p) {
      const double* image = images.data() + order[p] * d_;
      for (std::int64_t c = 0; c < d_; ++c) {
        low[c] = std::min(low[c], image[c]);
        high[c] = std::max(high[c], image[c]);
      }
      nodes_[at].square = std::max(nodes_[at].square, space_.square(ids_[order[p]]));
    }
    if (end - begin <= kLeaf) return;
    std::int64_t widest = 0;
    for (std::int64_t c = 1; c < d_; ++c)
      if (high[c] - low[c] > high[widest] - low[widest]) widest = c;
    const std::int64_t middle = begin + (end - begin) / 2;
    std::nth_element(order.begin() + begin, order.begin() + middle, order.begin() + end,
                     [&](std::int32_t a, std::int32_t b) {
                       const double x = images[a * d_ + widest], y = images[b * d_ + widest];
                       return x != y ? x < y : a < b;
                     });
    split(images, order, begin, middle);
    nodes_[at].right = static_cast<std::int64_t>(nodes_.size());
    split(images, order, middle, end);
  }

  const Space<T>& space_;
  const std::int64_t d_;
  const bool similarity_;
  const double slack_;  // of a sum of squared lengths, for all roundings of images and of their products
  std::vector<std::int32_t> ids_;
  std::vector<Node> nodes_;
  std::vector<double> boxes_;  // of each node the lowest and the highest corner
  std::vector<double> images_;
};

void check(std::int64_t n, std::int64_t k, std::int64_t most) {
  if (n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(n));
  if (k < 1 || k > most)
    throw std::invalid_argument("k must be in 1.." + std::to_string(most) + ", got " + std::to_string(k));
}

}  // namespace

template <class T>
Neighbors nearest_by_tree(const Points<T>& points, std::int64_t k, Metric metric, ThreadPool& pool,
                          const Report& report) {
  const std::int64_t n = points.n;
  check(n, k, n - 1);
  const Space<T> space(points, metric, pool);
  const Copies groups = copies(points, pool);
  const Tree<T> tree(space, groups.first, similarity(metric));
  const std::int64_t wanted = std::min(k, tree.size() - 1);
  Neighbors result;
  result.indices.resize(n * k);
  result.values.resize(n * k);
  pool.ranges(
      tree.size(), kRows,
      [&](std::int64_t first, std::int64_t last, int) {
        typename Tree<T>::Query query(tree, wanted);
        Expansion<T> expansion(space, groups, k);
        for (std::int64_t p = first; p < last; ++p)
          expansion.write(tree.id(p), wanted > 0 ? query.closest(p) : std::span<const Candidate>(), result);
      },
      report);
  return result;
}

template <class T>
Neighbors nearest_to_by_tree(const Points<T>& queries, const Points<T>& points, std::int64_t k, Metric metric,
                             ThreadPool& pool, const Report& report) {
  check(points.n, k, points.n);
  const Space<T> space(points, metric, pool);
  const Copies groups = copies(points, pool);
  const Tree<T> tree(space, groups.first, similarity(metric));
  Neighbors result{std::vector<std::int32_t>(queries.n * k), std::vector<float>(queries.n * k)};
  pool.ranges(
      queries.n, kRows,
      [&](std::int64_t first, std::int64_t last, int) {
        typename Tree<T>::Query query(tree, std::min(k, tree.size()));
        Expansion<T> expansion(space, groups, k);
        for (std::int64_t i = first; i < last; ++i)
          expansion.write_guest(i, query.closest(space.guest(queries.row(i))), result);
      },
      report);
  return result;
}

#define AGGLO_TREE(T)                                                                                     \
  template Neighbors nearest_by_tree(const Points<T>&, std::int64_t, Metric, ThreadPool&, const Report&); \
  template Neighbors nearest_to_by_tree(const Points<T>&, const Points<T>&, std::int64_t, Metric,         \
                                        ThreadPool&, const Report&);
AGGLO_EACH_NUMBER(AGGLO_TREE)

}  // namespace agglo
