#include "neighbors/exact.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/blas.hpp"
#include "neighbors/exact_sketch.hpp"
#include "neighbors/lists.hpp"
#include "points/expand.hpp"
#include "points/order.hpp"
#include "simd/dot.hpp"

namespace agglo {
namespace {

// How it works. Of equal points only one is searched for. The points are put in an order that keeps close
// ones together and cut into blocks, and these into leaves. Every pair of blocks is a tile, whose products
// are made once, by sgemm, and shown to the lists of both blocks: half the multiplications of a search row by
// row. Three bounds spare most of these multiplications where the data allow it:
//  - the distance of two leaves, less their radii, may exclude all pairs of their points;
//  - products of a few coordinates and the length of what they leave out (the sketch) are never less than the
//    products of the images; so only pairs that pass by their sketches are looked at in full;
//  - the first tiles are those of close blocks, so that the lists' bars are high from early on.

constexpr std::int64_t kLeaf = 64;              // points in a leaf
constexpr std::int64_t kStrip = 4 * kLeaf;      // rows of a tile multiplied at a time: 1 MB of products
constexpr std::int64_t kBlock = 16 * kLeaf;     // points in a block
constexpr std::int64_t kPanel = 1 << 20;        // numbers in a block, unless that makes it less than a leaf
constexpr std::int64_t kMostColumns = 1 << 22;  // beyond it, the bound of float32 products says nothing
constexpr std::int64_t kDense =
    8;  // if more than one of so many pairs passes by its sketch, multiply all in full

// The balls around leaves and blocks.
class Balls {
 public:
  // Balls of `size` consecutive rows, of which there are n.
  Balls(std::int64_t n, std::int64_t size, std::int64_t width)
      : size_(size), width_(width), balls_((n + size - 1) / size), centers_(balls_.size() * width) {}

  std::int64_t count() const { return static_cast<std::int64_t>(balls_.size()); }

  void set(std::int64_t ball, const float* rows, std::int64_t count, const float* slack) {
    std::vector<double> mean(width_, 0.0);
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < width_; ++j) mean[j] += rows[i * width_ + j];
    float* center = centers_.data() + ball * width_;
    for (std::int64_t j = 0; j < width_; ++j)
      center[j] = static_cast<float>(mean[j] / static_cast<double>(count));
    Ball& it = balls_[ball];
    for (std::int64_t i = 0; i < count; ++i) {
      const float* row = rows + i * width_;
      it.radius = std::max(it.radius, std::sqrt(squared_distance(row, center, width_)));
      it.square = std::max(it.square, dot(row, row, width_));
      it.slack = std::max(it.slack, static_cast<double>(slack[i]));
    }
  }

  // No pair of points of the two balls is closer than this.
  double closest(std::int64_t a, std::int64_t b, bool similarity) const {
    const Ball &x = balls_[a], &y = balls_[b];
    const double between =
        std::sqrt(squared_distance(centers_.data() + a * width_, centers_.data() + b * width_, width_));
    const double gap = std::max(0.0, between - x.radius - y.radius);
    // x.y = (|x|^2 + |y|^2 - |x - y|^2) / 2
    return ((similarity ? x.square + y.square : 0.0) - gap * gap) / 2 + (x.slack + y.slack);
  }

 private:
  struct Ball {
    double radius = 0, square = 0, slack = 0;
  };

  std::int64_t size_, width_;
  std::vector<Ball> balls_;
  std::vector<float> centers_;
};

// The scratch space of one worker.
struct Scratch {
  std::vector<float> rows, columns, products;
  std::int64_t block = -1;  // whose images are in columns
  std::vector<std::int32_t> found;
  struct Pair {
    std::int32_t p, q;
    float upper;
  };
  std::vector<Pair> pairs;
};

// Compares blocks and shows what may be close to the lists of both. Of a block with itself, each pair once.
template <class T>
class Tiles {
 public:
  Tiles(const Space<T>& space, std::span<const std::int32_t> ids, const OrderedRows<T>& rows, Lists<T>& lists,
        std::int64_t block, Gemm<float>* sgemm, bool similarity, ThreadPool& pool)
      : space_(space),
        ids_(ids),
        rows_(rows),
        lists_(lists),
        sgemm_(sgemm),
        similarity_(similarity),
        n_(static_cast<std::int64_t>(ids.size())),
        block_(block),
        blocks_((n_ + block - 1) / block),
        locks_(std::make_unique<std::mutex[]>(blocks_)),
        scratch_(pool.size()),
        leaves_(n_, kLeaf, rows.width()) {
    pool.run(leaves_.count(), [&](std::int64_t leaf, int worker) {
      const std::int64_t first = leaf * kLeaf, last = std::min(n_, first + kLeaf);
      const float* it =
          rows_.sketched() ? rows_.sketch(first) : rows_.images(first, last, scratch_[worker].rows);
      leaves_.set(leaf, it, last - first, lists_.slack() + first);
    });
  }

  // Tile t is that of block t % blocks and the one t / blocks further on, around the corner: every two blocks
  // meet once, each block as often as any other at any time, and neighbouring tiles seldom share a block.
  std::int64_t count() const { return blocks_ * (blocks_ + 1) / 2; }

  void show(std::int64_t tile, int worker) {
    const std::int64_t a = tile % blocks_, b = (a + tile / blocks_) % blocks_;
    const std::int64_t first = a * block_, last = std::min(n_, first + block_);
    const std::int64_t left = b * block_, right = std::min(n_, left + block_);
    Scratch& scratch = scratch_[worker];
    for (std::int64_t top = first; top < last; top += kStrip) {
      const std::int64_t bottom = std::min(last, top + kStrip);
      if (a == b) {
        compare_in_full({top, bottom, top, right}, a, b, scratch);
        continue;
      }
      const std::uint64_t needed = needed_leaves(top, bottom, left, right, a, b);
      for (std::int64_t from = left; from < right;) {
        if (!(needed >> (from - left) / kLeaf & 1)) {
          from += kLeaf;
          continue;
        }
        std::int64_t to = from;
        while (to < right && (needed >> (to - left) / kLeaf & 1)) to += kLeaf;
        to = std::min(to, right);
        if (rows_.sketched())
          compare({top, bottom, from, to}, a, b, scratch);
        else
          compare_in_full({top, bottom, from, to}, a, b, scratch);
        from = to;
      }
    }
  }

 private:
  struct Piece {  // of a tile: rows [top, bottom) and columns [left, right)
    std::int64_t top, bottom, left, right;

    std::int64_t height() const { return bottom - top; }
    std::int64_t width() const { return right - left; }
  };

  // To change or read the lists of two blocks.
  class Hold {
   public:
    Hold(std::mutex* locks, std::int64_t a, std::int64_t b)
        : one_(locks[std::min(a, b)]), two_(locks[std::max(a, b)], std::defer_lock) {
      if (a != b) two_.lock();
    }

   private:
    std::unique_lock<std::mutex> one_, two_;
  };

  // The column leaves, as bits, that may hold a pair with one of the rows that matters to either.
  std::uint64_t needed_leaves(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right,
                              std::int64_t a, std::int64_t b) {
    constexpr std::int64_t most = kBlock / kLeaf;
    float row_bars[most], column_bars[most];
    {
      const Hold hold(locks_.get(), a, b);
      const auto lowest = [&](std::int64_t first, std::int64_t last, float* bars) {
        for (; first < last; first += kLeaf)
          *bars++ = *std::min_element(lists_.bar() + first, lists_.bar() + std::min(last, first + kLeaf));
      };
      lowest(top, bottom, row_bars);
      lowest(left, right, column_bars);
    }
    std::uint64_t needed = 0;
    for (std::int64_t c = left; c < right; c += kLeaf)
      for (std::int64_t r = top; r < bottom; r += kLeaf) {
        const float bar = std::min(row_bars[(r - top) / kLeaf], column_bars[(c - left) / kLeaf]);
        if (leaves_.closest(r / kLeaf, c / kLeaf, similarity_) < bar) continue;
        needed |= std::uint64_t{1} << (c - left) / kLeaf;
        break;
      }
    return needed;
  }

  void multiply(const Piece& piece, const float* rows, const float* columns, std::int64_t width,
                Scratch& scratch) {
    scratch.found.resize(kBlock);
    agglo::multiply(sgemm_, rows, piece.height(), columns, piece.width(), width, scratch.products);
  }

  // Calls found(p, q, upper) for the pairs that matter by their products, until it returns false.
  template <class Found>
  void sift(const Piece& piece, Scratch& scratch, const Found& found) {
    const float *offset = lists_.offset(), *reach = lists_.reach();
    const int width = static_cast<int>(piece.width());
    for (std::int64_t p = piece.top; p < piece.bottom; ++p) {
      const float* products = scratch.products.data() + (p - piece.top) * width;
      const int begin = piece.left == piece.top ? static_cast<int>(p - piece.left) + 1 : 0;
      const int count = survivors(products, offset + piece.left, reach + piece.left, offset[p], reach[p],
                                  begin, width, scratch.found.data());
      for (int s = 0; s < count; ++s) {
        const std::int64_t q = piece.left + scratch.found[s];
        if (!found(p, q, (products[scratch.found[s]] - offset[p]) - offset[q])) return;
      }
    }
  }

  void compare_in_full(const Piece& piece, std::int64_t a, std::int64_t b, Scratch& scratch) {
    if (scratch.block != b) rows_.images(b * block_, std::min(n_, (b + 1) * block_), scratch.columns);
    scratch.block = b;
    const float* columns = scratch.columns.data() + (piece.left - b * block_) * space_.d();
    const float* rows = rows_.images(piece.top, piece.bottom, scratch.rows);
    multiply(piece, rows, columns, space_.d(), scratch);
    const Hold hold(locks_.get(), a, b);
    sift(piece, scratch, [&](std::int64_t p, std::int64_t q, float upper) {
      lists_.offer(p, q, upper);
      lists_.offer(q, p, upper);
      return true;
    });
  }

  void compare(const Piece& piece, std::int64_t a, std::int64_t b, Scratch& scratch) {
    multiply(piece, rows_.sketch(piece.top), rows_.sketch(piece.left), rows_.width(), scratch);
    const std::size_t most = static_cast<std::size_t>(piece.height() * piece.width() / kDense);
    scratch.pairs.clear();
    {
      const Hold hold(locks_.get(), a, b);
      sift(piece, scratch, [&](std::int64_t p, std::int64_t q, float upper) {
        scratch.pairs.push_back({static_cast<std::int32_t>(p), static_cast<std::int32_t>(q), upper});
        return scratch.pairs.size() <= most;
      });
    }
    if (scratch.pairs.size() > most) return compare_in_full(piece, a, b, scratch);
    for (auto& [p, q, upper] : scratch.pairs)
      upper = static_cast<float>(space_.quick_closeness(ids_[p], ids_[q])) +
              (lists_.slack()[p] + lists_.slack()[q]);
    const Hold hold(locks_.get(), a, b);
    for (const auto& [p, q, upper] : scratch.pairs) {
      lists_.offer(p, q, upper);
      lists_.offer(q, p, upper);
    }
  }

  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
  const OrderedRows<T>& rows_;
  Lists<T>& lists_;
  Gemm<float>* const sgemm_;
  const bool similarity_;
  const std::int64_t n_, block_, blocks_;
  const std::unique_ptr<std::mutex[]> locks_;  // of the lists of each block
  std::vector<Scratch> scratch_;
  Balls leaves_;
};

template <class T>
void check(const Points<T>& points) {
  if (points.n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(points.n));
  if (points.d > kMostColumns)
    throw std::invalid_argument("points of at most " + std::to_string(kMostColumns) +
                                " columns can be searched, got " + std::to_string(points.d) +
                                "; reduce their dimension first");
}

}  // namespace

template <class T>
Neighbors nearest(const Points<T>& points, std::int64_t k, Metric metric, std::span<const double> basis,
                  const Blas& blas, ThreadPool& pool, const Report& report) {
  check(points);
  const std::int64_t n = points.n;
  if (k < 1 || k >= n)
    throw std::invalid_argument("k must be in 1.." + std::to_string(n - 1) + ", got " + std::to_string(k));
  const Space<T> space(points, metric, pool);
  const Copies groups = copies(points, pool);
  std::vector<std::int32_t> ids = groups.first;
  const std::int64_t distinct = static_cast<std::int64_t>(ids.size());
  // The k closest points are among the copies of the k closest distinct ones, and of the point itself.
  const std::int64_t wanted = std::min(k, distinct - 1);
  const std::int64_t block = std::min(kBlock, std::max(kLeaf, kPanel / points.d / kLeaf * kLeaf));
  const OrderedRows<T> rows(space, ids, basis, block, kLeaf, blas.dgemm, pool);
  Lists<T> lists(space, ids, wanted);
  std::int64_t count = 0;
  if (wanted > 0) {
    Tiles<T> tiles(space, ids, rows, lists, block, blas.sgemm, similarity(metric), pool);
    count = tiles.count();
    pool.run(count, [&](std::int64_t tile, int worker) { tiles.show(tile, worker); }, report);
  }

  return expanded(space, groups, ids, lists, k, pool, [&](std::int64_t, std::int64_t) {
    if (report) report(count, count);
  });
}

template <class T>
std::vector<float> all_pairs(const Points<T>& points, Metric metric, ThreadPool& pool, const Report& report) {
  check(points);
  const std::int64_t n = points.n;
  const Space<T> space(points, metric, pool);
  std::vector<float> values(n * (n - 1));
  const auto row = [&](std::int64_t i) {
    for (std::int64_t j = i + 1; j < n; ++j)
      values[i * (n - 1) + (j - 1)] = values[j * (n - 1) + i] = space.value(space.closeness(i, j));
  };
  // Rows i and n - 1 - i of the upper triangle are together of one length for all i.
  pool.run((n + 1) / 2,
           [&](std::int64_t i, int) {
             row(i);
             if (i != n - 1 - i) row(n - 1 - i);
           },
           report);
  return values;
}

#define AGGLO_SEARCH(T)                                                                                    \
  template Neighbors nearest(const Points<T>&, std::int64_t, Metric, std::span<const double>, const Blas&, \
                             ThreadPool&, const Report&);                                                  \
  template std::vector<float> all_pairs(const Points<T>&, Metric, ThreadPool&, const Report&);
AGGLO_EACH_NUMBER(AGGLO_SEARCH)

}  // namespace agglo
