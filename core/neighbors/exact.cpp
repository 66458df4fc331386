#include "neighbors/exact.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/blas.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact_codes.hpp"
#include "neighbors/exact_sketch.hpp"
#include "points/duplicates.hpp"
#include "points/expand.hpp"
#include "simd/dot.hpp"

namespace agglo {
namespace {

// How the search works: of each group of duplicates, only the first point is searched for.
// The points are sorted so that points that are close to each other are close in memory.
// The sorted points are cut into blocks, and each block is cut into leaves.
// A tile is a pair of blocks. The function sgemm computes the dot products of all pairs of rows in a tile.
// Each product serves the candidate lists of both points. This halves the work of a row-by-row search.
// Four techniques save most of the remaining work:
//  - If two leaves are far from each other, their bounding balls exclude all pairs of their points.
//  - The dot product of two int8 codes plus a small slack is an upper bound of the product of the rows.
//    Pairs are compared in full only if this upper bound reaches the threshold of a candidate list.
//  - A sketch consists of a few coordinates of a row and the length of the remainder.
//    The product of two sketches is an upper bound of the product of the rows.
//    If there are sketches, the int8 codes represent the sketches instead of the rows.
//  - Tiles of nearby blocks come first, so that the thresholds of the candidate lists rise early.

constexpr std::int64_t kLeaf = 64;           // points per leaf
constexpr std::int64_t kStrip = 4 * kLeaf;   // rows of a tile per matrix product; the products take 1 MB
constexpr std::int64_t kBlock = 16 * kLeaf;  // maximum number of points per block
// The maximum size of a block with several leaves: points times columns.
constexpr std::int64_t kMaxNumbers = 1 << 20;
// The maximum number of columns. With more columns, the float32 error bounds are too large to be useful.
constexpr std::int64_t kMaxColumns = 1 << 22;
constexpr std::int64_t kRows = 8;  // rows whose codes are multiplied at once
// If more than 1 / kDense of the pairs pass the test by sketches or codes, all pairs are compared in full.
constexpr std::int64_t kDense = 8;

// Bounding balls of groups of consecutive rows.
class BoundingBalls {
 public:
  // Cut n rows into groups of `size` consecutive rows.
  BoundingBalls(std::int64_t n, std::int64_t size, std::int64_t width)
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

  // Return an upper bound of the similarity of a point in ball a and a point in ball b.
  double max_similarity(std::int64_t a, std::int64_t b, bool is_similarity) const {
    const Ball &x = balls_[a], &y = balls_[b];
    const double between =
        std::sqrt(squared_distance(centers_.data() + a * width_, centers_.data() + b * width_, width_));
    const double gap = std::max(0.0, between - x.radius - y.radius);
    // For a row x of ball a and a row y of ball b: x.y = (|x|^2 + |y|^2 - |x - y|^2) / 2.
    return ((is_similarity ? x.square + y.square : 0.0) - gap * gap) / 2 + (x.slack + y.slack);
  }

 private:
  struct Ball {
    double radius = 0, square = 0, slack = 0;
  };

  std::int64_t size_, width_;
  std::vector<Ball> balls_;
  std::vector<float> centers_;
};

// Buffers of one worker.
struct Scratch {
  std::vector<float> rows, columns, products, thresholds;
  std::vector<std::int8_t> codes;
  std::vector<std::int32_t> code_products;
  std::int64_t block = -1;  // the block whose rows are in `columns`
  std::vector<std::int32_t> found;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;  // pairs of positions to compare in full
  std::vector<float> bounds;  // upper bounds of the similarities of these pairs
};

// Compares pairs of blocks. If two points may be close, each point is offered to the candidate list of the
// other. If a block is compared with itself, each pair of points in the block is compared once.
class Tiles {
 public:
  Tiles(const Space& space, std::span<const std::int32_t> ids, const OrderedRows& rows,
        CandidateLists& candidates, std::int64_t block, Gemm<float>* sgemm, bool is_similarity,
        ThreadPool& pool)
      : space_(space),
        ids_(ids),
        rows_(rows),
        candidates_(candidates),
        sgemm_(sgemm),
        is_similarity_(is_similarity),
        n_(static_cast<std::int64_t>(ids.size())),
        block_(block),
        blocks_((n_ + block - 1) / block),
        locks_(std::make_unique<std::mutex[]>(blocks_)),
        scratch_(pool.size()),
        leaves_(n_, kLeaf, rows.width()) {
    if (codes_are_fast(rows.width())) codes_.emplace(rows, n_, candidates.offset(), pool);
    pool.run(leaves_.count(), [&](std::int64_t leaf, int worker) {
      const std::int64_t first = leaf * kLeaf, last = std::min(n_, first + kLeaf);
      leaves_.set(leaf, rows_.comparable(first, last, scratch_[worker].rows), last - first,
                  candidates_.slack() + first);
    });
  }

  // Tile t compares block a = t % blocks with block (a + t / blocks) % blocks.
  // So every pair of blocks has exactly one tile. Consecutive tiles seldom share a block.
  std::int64_t count() const { return blocks_ * (blocks_ + 1) / 2; }

  void compare_blocks(std::int64_t tile, int worker) {
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
        const Piece piece{top, bottom, from, to};
        if (codes_)
          compare_codes(piece, a, b, scratch);
        else if (rows_.has_sketches())
          compare_sketches(piece, a, b, scratch);
        else
          compare_in_full(piece, a, b, scratch);
        from = to;
      }
    }
  }

 private:
  struct Piece {  // a part of a tile: rows [top, bottom) and columns [left, right)
    std::int64_t top, bottom, left, right;

    std::int64_t height() const { return bottom - top; }
    std::int64_t width() const { return right - left; }
  };

  // Locks the candidate lists of two blocks.
  class BlockLock {
   public:
    BlockLock(std::mutex* locks, std::int64_t a, std::int64_t b)
        : one_(locks[std::min(a, b)]), two_(locks[std::max(a, b)], std::defer_lock) {
      if (a != b) two_.lock();
    }

   private:
    std::unique_lock<std::mutex> one_, two_;
  };

  // Returns one bit per leaf of the points [left, right). The bit of a leaf is 1 if the leaf is needed.
  // A leaf is needed if a point in the leaf may be close to one of the points [top, bottom).
  std::uint64_t needed_leaves(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right,
                              std::int64_t a, std::int64_t b) {
    constexpr std::int64_t most = kBlock / kLeaf;
    float row_thresholds[most], column_thresholds[most];
    {
      const BlockLock lock(locks_.get(), a, b);
      const auto lowest = [&](std::int64_t first, std::int64_t last, float* thresholds) {
        for (; first < last; first += kLeaf)
          *thresholds++ = *std::min_element(candidates_.threshold() + first,
                                            candidates_.threshold() + std::min(last, first + kLeaf));
      };
      lowest(top, bottom, row_thresholds);
      lowest(left, right, column_thresholds);
    }
    std::uint64_t needed = 0;
    for (std::int64_t c = left; c < right; c += kLeaf)
      for (std::int64_t r = top; r < bottom; r += kLeaf) {
        const float threshold =
            std::min(row_thresholds[(r - top) / kLeaf], column_thresholds[(c - left) / kLeaf]);
        if (leaves_.max_similarity(r / kLeaf, c / kLeaf, is_similarity_) < threshold) continue;
        needed |= std::uint64_t{1} << (c - left) / kLeaf;
        break;
      }
    return needed;
  }

  void multiply(const Piece& piece, const float* rows, const float* columns, std::int64_t width,
                Scratch& scratch) {
    scratch.found.resize(kBlock);
    multiply_blas(sgemm_, rows, piece.height(), columns, piece.width(), width, scratch.products);
  }

  // Calls found(p, q, upper_bound) for each pair of rows whose upper bound reaches the threshold of at least
  // one of the two rows. p and q are the positions of the rows.
  // If found() returns false, the function stops.
  template <class Found>
  void filter_pairs(const Piece& piece, Scratch& scratch, const Found& found) {
    const float *offset = candidates_.offset(), *cutoff = candidates_.cutoff();
    const int width = static_cast<int>(piece.width());
    for (std::int64_t p = piece.top; p < piece.bottom; ++p) {
      const float* products = scratch.products.data() + (p - piece.top) * width;
      const int begin = piece.left == piece.top ? static_cast<int>(p - piece.left) + 1 : 0;
      const int count = select_above(products, offset + piece.left, cutoff + piece.left, offset[p], cutoff[p],
                                     begin, width, scratch.found.data());
      for (int s = 0; s < count; ++s) {
        const std::int64_t q = piece.left + scratch.found[s];
        if (!found(p, q, (products[scratch.found[s]] - offset[p]) - offset[q])) return;
      }
    }
  }

  void compare_in_full(const Piece& piece, std::int64_t a, std::int64_t b, Scratch& scratch) {
    if (scratch.block != b) rows_.normalized(b * block_, std::min(n_, (b + 1) * block_), scratch.columns);
    scratch.block = b;
    const float* columns = scratch.columns.data() + (piece.left - b * block_) * space_.d();
    const float* rows = rows_.normalized(piece.top, piece.bottom, scratch.rows);
    multiply(piece, rows, columns, space_.d(), scratch);
    const BlockLock lock(locks_.get(), a, b);
    filter_pairs(piece, scratch, [&](std::int64_t p, std::int64_t q, float upper_bound) {
      candidates_.offer(p, q, upper_bound);
      candidates_.offer(q, p, upper_bound);
      return true;
    });
  }

  // Computes upper bounds of the similarities of all pairs from int8 codes.
  // Only pairs whose upper bound reaches the threshold of at least one of the two rows are compared in full.
  // Thresholds never fall. So a copy of earlier thresholds excludes no pair of close points.
  void compare_codes(const Piece& piece, std::int64_t a, std::int64_t b, Scratch& scratch) {
    scratch.thresholds.resize(piece.height() + piece.width());
    float *row_thresholds = scratch.thresholds.data(), *thresholds = row_thresholds + piece.height();
    {
      const BlockLock lock(locks_.get(), a, b);
      std::copy_n(candidates_.threshold() + piece.top, piece.height(), row_thresholds);
      std::copy_n(candidates_.threshold() + piece.left, piece.width(), thresholds);
    }
    const std::size_t most = static_cast<std::size_t>(piece.height() * piece.width() / kDense);
    const std::int64_t stride = (piece.width() + kPanel - 1) / kPanel * kPanel;
    const float *scale = codes_->scale(), *bias = codes_->bias();
    scratch.found.resize(kBlock);
    scratch.pairs.clear();
    for (std::int64_t first = piece.top; first < piece.bottom; first += kRows) {
      const std::int64_t last = std::min(piece.bottom, first + kRows);
      codes_->multiply(first, last, piece.left, stride, scratch.codes, scratch.code_products);
      for (std::int64_t p = first; p < last; ++p) {
        const int count =
            select_bounds(scratch.code_products.data() + (p - first) * stride, scale + piece.left,
                          bias + piece.left, thresholds, scale[p], bias[p], row_thresholds[p - piece.top], 0,
                          static_cast<int>(piece.width()), scratch.found.data());
        for (int s = 0; s < count; ++s)
          scratch.pairs.push_back(
              {static_cast<std::int32_t>(p), static_cast<std::int32_t>(piece.left + scratch.found[s])});
      }
      if (scratch.pairs.size() > most) return compare_in_full(piece, a, b, scratch);
    }
    offer_pairs(a, b, scratch);
  }

  // Computes upper bounds of the similarities of all pairs from sketches.
  // Only pairs whose upper bound reaches the threshold of at least one of the two rows are compared in full.
  void compare_sketches(const Piece& piece, std::int64_t a, std::int64_t b, Scratch& scratch) {
    multiply(piece, rows_.comparable(piece.top, piece.bottom, scratch.rows),
             rows_.comparable(piece.left, piece.right, scratch.columns), rows_.width(), scratch);
    const std::size_t most = static_cast<std::size_t>(piece.height() * piece.width() / kDense);
    scratch.pairs.clear();
    {
      const BlockLock lock(locks_.get(), a, b);
      filter_pairs(piece, scratch, [&](std::int64_t p, std::int64_t q, float) {
        scratch.pairs.push_back({static_cast<std::int32_t>(p), static_cast<std::int32_t>(q)});
        return scratch.pairs.size() <= most;
      });
    }
    if (scratch.pairs.size() > most) return compare_in_full(piece, a, b, scratch);
    offer_pairs(a, b, scratch);
  }

  // Compares the pairs of `scratch` in full, one by one. Offers each point of a pair to the candidate list of
  // the other.
  void offer_pairs(std::int64_t a, std::int64_t b, Scratch& scratch) {
    scratch.bounds.clear();
    for (const auto& [p, q] : scratch.pairs)
      scratch.bounds.push_back(static_cast<float>(space_.quick_similarity(ids_[p], ids_[q])) +
                               (candidates_.slack()[p] + candidates_.slack()[q]));
    const BlockLock lock(locks_.get(), a, b);
    for (std::size_t s = 0; s < scratch.pairs.size(); ++s) {
      const auto& [p, q] = scratch.pairs[s];
      candidates_.offer(p, q, scratch.bounds[s]);
      candidates_.offer(q, p, scratch.bounds[s]);
    }
  }

  const Space& space_;
  const std::span<const std::int32_t> ids_;
  const OrderedRows& rows_;
  CandidateLists& candidates_;
  Gemm<float>* const sgemm_;
  const bool is_similarity_;
  const std::int64_t n_, block_, blocks_;
  const std::unique_ptr<std::mutex[]> locks_;  // one lock per block, for the candidate lists of the block
  std::vector<Scratch> scratch_;
  BoundingBalls leaves_;
  std::optional<CodedRows> codes_;
};

void check(const AnyPoints& points) {
  if (points.n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(points.n));
  if (points.d > kMaxColumns)
    throw std::invalid_argument("points of at most " + std::to_string(kMaxColumns) +
                                " columns can be searched, got " + std::to_string(points.d) +
                                "; reduce their dimension first");
}

}  // namespace

Neighbors exact_neighbors(const AnyPoints& points, std::int64_t k, Metric metric,
                          std::span<const double> basis, const Blas& blas, ThreadPool& pool,
                          const Report& report) {
  check(points);
  const std::int64_t n = points.n;
  if (k < 1 || k >= n)
    throw std::invalid_argument("k must be in 1.." + std::to_string(n - 1) + ", got " + std::to_string(k));
  const Space space(points, metric, pool);
  const Duplicates duplicates = find_duplicates(points, pool);
  std::vector<std::int32_t> ids = duplicates.first;
  const std::int64_t distinct = static_cast<std::int64_t>(ids.size());
  // Each of the k nearest points equals one of the k nearest distinct points, or the point itself.
  const std::int64_t wanted = std::min(k, distinct - 1);
  const std::int64_t block = std::min(kBlock, std::max(kLeaf, kMaxNumbers / points.d / kLeaf * kLeaf));
  const OrderedRows rows(space, ids, basis, block, kLeaf, blas.dgemm, pool);
  CandidateLists candidates(space, ids, wanted);
  std::int64_t count = 0;
  if (wanted > 0) {
    Tiles tiles(space, ids, rows, candidates, block, blas.sgemm, is_similarity(metric), pool);
    count = tiles.count();
    pool.run(count, [&](std::int64_t tile, int worker) { tiles.compare_blocks(tile, worker); }, report);
  }

  return expand_duplicates(space, duplicates, ids, candidates, k, pool, [&](std::int64_t, std::int64_t) {
    if (report) report(count, count);
  });
}

std::vector<float> pairwise_values(const AnyPoints& points, Metric metric, ThreadPool& pool,
                                   const Report& report) {
  check(points);
  const std::int64_t n = points.n;
  const Space space(points, metric, pool);
  std::vector<float> values(n * (n - 1));
  const auto row = [&](std::int64_t i) {
    for (std::int64_t j = i + 1; j < n; ++j)
      values[i * (n - 1) + (j - 1)] = values[j * (n - 1) + i] = space.value(space.similarity(i, j));
  };
  // Each task computes the rows i and n - 1 - i of the upper triangle. So all tasks take equally long.
  pool.run((n + 1) / 2,
           [&](std::int64_t i, int) {
             row(i);
             if (i != n - 1 - i) row(n - 1 - i);
           },
           report);
  return values;
}

}  // namespace agglo
