#include "neighbors/kdtree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/topk.hpp"
#include "neighbors/lists.hpp"
#include "points/duplicates.hpp"
#include "points/expand.hpp"

namespace agglo {
namespace {

// How the search works: of each group of duplicates, only the first point is in the tree.
// The tree halves the normalized rows along the column with the largest spread, recursively, down to leaves.
// A query visits the nearer child of a node first.
// A query skips a node if all points in the node's box are farther than the current k-th neighbour.
// Normalized rows, in float64, only prune points. The remaining points are compared by exact similarity.
// So the neighbours, and the order of ties, are the same as in the exact search.

constexpr std::int64_t kLeaf = 16;   // maximum number of points per leaf
constexpr std::int64_t kRows = 256;  // nearby queries per chunk of parallel work
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Node {
  std::int64_t begin, end;  // the range of positions in the node
  std::int64_t right = 0;   // the right child; 0 if the node is a leaf. The left child is the next node.
  double square = 0;        // the largest squared length of the rows in the node
};

class KdTree {
 public:
  KdTree(const Space& space, std::span<const std::int32_t> ids, bool is_similarity)
      : space_(space),
        d_(space.d()),
        is_similarity_(is_similarity),
        slack_(static_cast<double>(d_ + 16) * std::numeric_limits<double>::epsilon()),
        ids_(ids.begin(), ids.end()) {
    const std::int64_t n = size();
    std::vector<double> rows(n * d_);
    for (std::int64_t p = 0; p < n; ++p) space.normalize(ids[p], rows.data() + p * d_);
    std::vector<std::int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    split(rows, order, 0, n);
    // Store the rows leaf by leaf. Within a leaf, store the rows column by column.
    leaf_rows_.resize(n * d_);
    for (const Node& node : nodes_) {
      if (node.right != 0) continue;
      double* out = leaf_rows_.data() + node.begin * d_;
      for (std::int64_t c = 0; c < d_; ++c)
        for (std::int64_t p = node.begin; p < node.end; ++p) *out++ = rows[order[p] * d_ + c];
    }
    for (std::int64_t p = 0; p < n; ++p) ids_[p] = ids[order[p]];
  }

  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  std::int32_t id(std::int64_t position) const { return ids_[position]; }

  // Finds the k nearest points of a point or a query, nearest first.
  class Searcher {
   public:
    Searcher(const KdTree& tree, std::int64_t k) : tree_(tree), query_row_(tree.d_), best_(k) {}

    std::span<const Candidate> nearest(std::int64_t position) {
      const std::int32_t i = tree_.ids_[position];
      tree_.space_.normalize(i, query_row_.data());
      return nearest(position, tree_.space_.square(i),
                     [&](std::int32_t j) { return tree_.space_.similarity(i, j); });
    }

    std::span<const Candidate> nearest(const Query& query) {
      tree_.space_.normalize(query, query_row_.data());
      return nearest(-1, query.square, [&](std::int32_t j) { return tree_.space_.similarity(query, j); });
    }

   private:
    // Returns the neighbours of the current row. If the row is a point, `position` is its position.
    // If the row is a query, `position` is -1.
    template <class Similarity>
    std::span<const Candidate> nearest(std::int64_t position, double square, const Similarity& similarity) {
      position_ = position;
      square_ = square;
      best_.clear();
      descend(0, tree_.bound(query_row_.data(), square_, 0), similarity);
      return best_.sort();
    }

    double threshold() const { return best_.is_full() ? best_.last().similarity : -kInfinity; }

    template <class Similarity>
    void descend(std::int64_t node, double bound, const Similarity& similarity) {
      if (bound < threshold()) return;
      const Node& here = tree_.nodes_[node];
      if (here.right == 0) return compare(here, similarity);
      const double left = tree_.bound(query_row_.data(), square_, node + 1),
                   right = tree_.bound(query_row_.data(), square_, here.right);
      // Visit the child with the nearer box first.
      if (left >= right) {
        descend(node + 1, left, similarity);
        descend(here.right, right, similarity);
      } else {
        descend(here.right, right, similarity);
        descend(node + 1, left, similarity);
      }
    }

    template <class Similarity>
    void compare(const Node& leaf, const Similarity& similarity) {
      const std::int64_t count = leaf.end - leaf.begin;
      double squares[kLeaf] = {};
      const double* column = tree_.leaf_rows_.data() + leaf.begin * tree_.d_;
      for (std::int64_t c = 0; c < tree_.d_; ++c, column += count)
        for (std::int64_t s = 0; s < count; ++s)
          squares[s] += (column[s] - query_row_[c]) * (column[s] - query_row_[c]);
      for (std::int64_t s = 0; s < count; ++s) {
        const std::int64_t other = leaf.begin + s;
        if (other == position_ || tree_.upper(square_, leaf.square, squares[s]) < threshold()) continue;
        const std::int32_t j = tree_.ids_[other];
        best_.offer({similarity(j), j});
      }
    }

    const KdTree& tree_;
    std::int64_t position_ = 0;
    double square_ = 0;
    std::vector<double> query_row_;
    TopK<Candidate> best_;
  };

 private:
  // Returns an upper bound of the similarity of two rows x and y, given the square of their distance.
  // The bound follows from x.y = (|x|^2 + |y|^2 - |x - y|^2) / 2, and includes all rounding errors.
  double upper(double square, double other, double squared_distance) const {
    return ((is_similarity_ ? square + other : 0.0) - squared_distance) / 2 + slack_ * (square + other);
  }

  double bound(const double* row, double square, std::int64_t node) const {
    const double* low = boxes_.data() + node * 2 * d_;
    const double* high = low + d_;
    double distance = 0;
    for (std::int64_t c = 0; c < d_; ++c) {
      const double outside = std::max({low[c] - row[c], row[c] - high[c], 0.0});
      distance += outside * outside;
    }
    return upper(square, nodes_[node].square, distance);
  }

  void split(const std::vector<double>& rows, std::vector<std::int32_t>& order, std::int64_t begin,
             std::int64_t end) {
    const std::size_t at = nodes_.size();
    nodes_.push_back({begin, end});
    boxes_.resize(boxes_.size() + 2 * d_);
    double* low = boxes_.data() + at * 2 * d_;
    double* high = low + d_;
    std::fill_n(low, d_, kInfinity);
    std::fill_n(high, d_, -kInfinity);
    for (std::int64_t p = begin; p < end; ++p) {
      const double* row = rows.data() + order[p] * d_;
      for (std::int64_t c = 0; c < d_; ++c) {
        low[c] = std::min(low[c], row[c]);
        high[c] = std::max(high[c], row[c]);
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
                       const double x = rows[a * d_ + widest], y = rows[b * d_ + widest];
                       return x != y ? x < y : a < b;
                     });
    split(rows, order, begin, middle);
    nodes_[at].right = static_cast<std::int64_t>(nodes_.size());
    split(rows, order, middle, end);
  }

  const Space& space_;
  const std::int64_t d_;
  const bool is_similarity_;
  const double slack_;  // an upper bound of all rounding errors, relative to the sum of both squared lengths
  std::vector<std::int32_t> ids_;
  std::vector<Node> nodes_;
  std::vector<double> boxes_;  // for each node, the lower and the upper corner of its box
  std::vector<double> leaf_rows_;
};

void check(std::int64_t n, std::int64_t k, std::int64_t most) {
  if (n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(n));
  if (k < 1 || k > most)
    throw std::invalid_argument("k must be in 1.." + std::to_string(most) + ", got " + std::to_string(k));
}

}  // namespace

Neighbors kdtree_neighbors(const AnyPoints& points, std::int64_t k, Metric metric, ThreadPool& pool,
                           const Report& report) {
  const std::int64_t n = points.n;
  check(n, k, n - 1);
  const Space space(points, metric, pool);
  const Duplicates duplicates = find_duplicates(points, pool);
  const KdTree tree(space, duplicates.first, is_similarity(metric));
  const std::int64_t wanted = std::min(k, tree.size() - 1);
  Neighbors result;
  result.indices.resize(n * k);
  result.values.resize(n * k);
  pool.ranges(
      tree.size(), kRows,
      [&](std::int64_t first, std::int64_t last, int) {
        KdTree::Searcher searcher(tree, wanted);
        DuplicateExpansion expansion(space, duplicates, k);
        for (std::int64_t p = first; p < last; ++p)
          expansion.write(tree.id(p), wanted > 0 ? searcher.nearest(p) : std::span<const Candidate>(),
                          result);
      },
      report);
  return result;
}

Neighbors kdtree_query(const AnyPoints& queries, const AnyPoints& points, std::int64_t k, Metric metric,
                       ThreadPool& pool, const Report& report) {
  check(points.n, k, points.n);
  const Space space(points, metric, pool);
  const Duplicates duplicates = find_duplicates(points, pool);
  const KdTree tree(space, duplicates.first, is_similarity(metric));
  Neighbors result{std::vector<std::int32_t>(queries.n * k), std::vector<float>(queries.n * k)};
  pool.ranges(
      queries.n, kRows,
      [&](std::int64_t first, std::int64_t last, int) {
        KdTree::Searcher searcher(tree, std::min(k, tree.size()));
        DuplicateExpansion expansion(space, duplicates, k);
        for (std::int64_t i = first; i < last; ++i)
          expansion.write_query(i, searcher.nearest(space.make_query(queries.row(i))), result);
      },
      report);
  return result;
}

}  // namespace agglo
