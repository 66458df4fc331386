// The rows of an exact search, and short sketches of the rows.
// The rows are sorted so that points that are close to each other are also close in memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/blas.hpp"
#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "points/order.hpp"
#include "points/space.hpp"

namespace agglo {

// The rows of the distinct points `ids`. The position of a point is its index in `ids`.
// The constructor sorts `ids` by order_by_halving, so that the points of a block or a leaf are close.
// If there is a basis, every row has a sketch.
// The sketch of a row consists of its coordinates in the basis and the length of the remainder.
class OrderedRows {
 public:
  OrderedRows(const Space& space, std::vector<std::int32_t>& ids, std::span<const double> basis,
              std::int64_t block, std::int64_t leaf, Gemm<double>* dgemm, ThreadPool& pool)
      : space_(space), ids_(ids), width_(basis.size() / static_cast<std::size_t>(space.d())) {
    sort_ids(basis, block, leaf, dgemm, pool);
    if (width_ > 0) {
      sketch_ = coordinates(basis, width_, true, dgemm, pool);
      ++width_;
    }
  }

  bool has_sketches() const { return !sketch_.empty(); }
  std::int64_t width() const { return has_sketches() ? width_ : space_.d(); }

  // Return the sketches of the positions [first, last). If there are no sketches, return the normalized rows.
  const float* comparable(std::int64_t first, std::int64_t last, std::vector<float>& scratch) const {
    return has_sketches() ? sketch_.data() + first * width_ : normalized(first, last, scratch);
  }

  // Write the normalized rows of the positions [first, last) to `scratch`, and return a pointer to them.
  const float* normalized(std::int64_t first, std::int64_t last, std::vector<float>& scratch) const {
    scratch.resize((last - first) * space_.d());
    for (std::int64_t p = first; p < last; ++p) {
      if (p + 4 < last) space_.prefetch_row(ids_[p + 4]);
      space_.normalize(ids_[p], scratch.data() + (p - first) * space_.d());
    }
    return scratch.data();
  }

 private:
  static constexpr std::int64_t kRows = 256;  // rows per chunk of parallel work
  static constexpr std::int64_t kOrder = 16;  // number of coordinates that determine the order of the rows

  void sort_ids(std::span<const double> basis, std::int64_t block, std::int64_t leaf, Gemm<double>* dgemm,
                ThreadPool& pool) {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), d = space_.d();
    if (n <= block) return;
    std::int64_t width = std::min(kOrder, width_);
    std::vector<float> leading;
    if (width > 0) {
      leading = coordinates(basis.first(width * d), width, false, dgemm, pool);
    } else {
      const auto widest = widest_columns();
      width = static_cast<std::int64_t>(widest.size());
      leading.resize(n * width);
      pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
        std::vector<float> row(d);
        for (std::int64_t p = first; p < last; ++p) {
          space_.normalize(ids_[p], row.data());
          for (std::int64_t c = 0; c < width; ++c) leading[p * width + c] = row[widest[c]];
        }
      });
    }
    const auto order = order_by_halving(leading, width, block, leaf);
    std::vector<std::int32_t> ordered(n);
    for (std::int64_t p = 0; p < n; ++p) ordered[p] = ids_[order[p]];
    ids_ = std::move(ordered);
  }

  // Returns the columns with the largest spread. The spread is estimated from a sample of the rows.
  std::vector<std::int64_t> widest_columns() const {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), d = space_.d(),
                       sample = std::min(n, kRows);
    std::vector<double> sums(d, 0), squares(d, 0), row(d);
    for (std::int64_t s = 0; s < sample; ++s) {
      space_.normalize(ids_[s * n / sample], row.data());
      for (std::int64_t j = 0; j < d; ++j) {
        sums[j] += row[j];
        squares[j] += row[j] * row[j];
      }
    }
    std::vector<std::pair<double, std::int64_t>> spread(d);
    for (std::int64_t j = 0; j < d; ++j)
      spread[j] = {sums[j] * sums[j] / static_cast<double>(sample) - squares[j], j};
    std::sort(spread.begin(), spread.end());
    std::vector<std::int64_t> columns;
    for (std::int64_t c = 0; c < std::min(kOrder, d); ++c) columns.push_back(spread[c].second);
    return columns;
  }

  // Returns the coordinates of the rows in an orthonormal basis.
  // If `rest` is true, each row gets one more coordinate.
  // The last coordinate is an upper bound of the length of the row's part outside the basis.
  // By the Cauchy-Schwarz inequality, the product of two rows is at most the dot product of their
  // coordinates.
  std::vector<float> coordinates(std::span<const double> basis, std::int64_t width, bool rest,
                                 Gemm<double>* dgemm, ThreadPool& pool) const {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), d = space_.d(),
                       stride = width + (rest ? 1 : 0);
    const double unit = std::numeric_limits<float>::epsilon() / 2;
    std::vector<float> out(n * stride);
    pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
      std::vector<double> rows((last - first) * d), products;
      for (std::int64_t p = first; p < last; ++p) space_.normalize(ids_[p], rows.data() + (p - first) * d);
      multiply_blas(dgemm, rows.data(), last - first, basis.data(), width, d, products);
      for (std::int64_t p = first; p < last; ++p) {
        float* row = out.data() + p * stride;
        double left = space_.square(ids_[p]);
        for (std::int64_t c = 0; c < width; ++c) {
          row[c] = static_cast<float>(products[(p - first) * width + c]);
          left -= static_cast<double>(row[c]) * row[c];
        }
        // Rounding may change the coordinates slightly, relative to the length of the row.
        // The last coordinate is increased by more than this error, so that it stays an upper bound.
        if (rest) {
          left = std::max(left, 0.0) + 8 * unit * space_.square(ids_[p]);
          row[width] = static_cast<float>(std::sqrt(left) * (1 + 2 * unit));
        }
      }
    });
    return out;
  }

  const Space& space_;
  std::vector<std::int32_t>& ids_;
  std::int64_t width_;
  std::vector<float> sketch_;
};

}  // namespace agglo
