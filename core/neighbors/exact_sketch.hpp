// Points in an order that keeps close ones together, and sketches of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "points/order.hpp"
#include "points/space.hpp"

namespace agglo {

// The distinct points, by their places in the order, as rows that sgemm multiplies; `ids` are put in that
// order, by blocks and leaves of so many. With a basis there is a sketch of each: a few coordinates and the
// length of what they leave out.
template <class T>
class OrderedRows {
 public:
  OrderedRows(const Space<T>& space, std::vector<std::int32_t>& ids, std::span<const double> basis,
              std::int64_t block, std::int64_t leaf, Gemm<double>* dgemm, ThreadPool& pool)
      : space_(space), ids_(ids), width_(basis.size() / static_cast<std::size_t>(space.d())) {
    put_in_order(basis, block, leaf, dgemm, pool);
    if (width_ > 0) {
      sketch_ = coordinates(basis, width_, true, dgemm, pool);
      ++width_;
    }
  }

  bool sketched() const { return !sketch_.empty(); }
  std::int64_t width() const { return sketched() ? width_ : space_.d(); }

  // From place p on.
  const float* sketch(std::int64_t p) const { return sketch_.data() + p * width_; }

  // Of places [first, last), made in `scratch`.
  const float* images(std::int64_t first, std::int64_t last, std::vector<float>& scratch) const {
    scratch.resize((last - first) * space_.d());
    for (std::int64_t p = first; p < last; ++p) {
      if (p + 4 < last) prefetch(space_.points().row(ids_[p + 4]), space_.d());
      space_.image(ids_[p], scratch.data() + (p - first) * space_.d());
    }
    return scratch.data();
  }

 private:
  static constexpr std::int64_t kRows = 256;  // rows in a chunk of work
  static constexpr std::int64_t kOrder = 16;  // coordinates that the order goes by

  void put_in_order(std::span<const double> basis, std::int64_t block, std::int64_t leaf, Gemm<double>* dgemm,
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
        std::vector<float> image(d);
        for (std::int64_t p = first; p < last; ++p) {
          space_.image(ids_[p], image.data());
          for (std::int64_t c = 0; c < width; ++c) leading[p * width + c] = image[widest[c]];
        }
      });
    }
    const auto order = close_order(leading, width, block, leaf);
    std::vector<std::int32_t> ordered(n);
    for (std::int64_t p = 0; p < n; ++p) ordered[p] = ids_[order[p]];
    ids_ = std::move(ordered);
  }

  // The columns that spread most over a sample of the images.
  std::vector<std::int64_t> widest_columns() const {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), d = space_.d(),
                       sample = std::min(n, kRows);
    std::vector<double> sums(d, 0), squares(d, 0), image(d);
    for (std::int64_t s = 0; s < sample; ++s) {
      space_.image(ids_[s * n / sample], image.data());
      for (std::int64_t j = 0; j < d; ++j) {
        sums[j] += image[j];
        squares[j] += image[j] * image[j];
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

  // Coordinates of the images in an orthonormal basis and, if wanted, the length of what they leave out,
  // never less than it is. By Cauchy and Schwarz, products of such rows are not less than those of the
  // images.
  std::vector<float> coordinates(std::span<const double> basis, std::int64_t width, bool rest,
                                 Gemm<double>* dgemm, ThreadPool& pool) const {
    const std::int64_t n = static_cast<std::int64_t>(ids_.size()), d = space_.d(),
                       stride = width + (rest ? 1 : 0);
    const double unit = std::numeric_limits<float>::epsilon() / 2;
    std::vector<float> out(n * stride);
    pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
      std::vector<double> images((last - first) * d), products((last - first) * width);
      for (std::int64_t p = first; p < last; ++p) space_.image(ids_[p], images.data() + (p - first) * d);
      char transposed = 'T', plain = 'N';
      int rows = static_cast<int>(width), columns = static_cast<int>(last - first), k = static_cast<int>(d);
      double one = 1, zero = 0;
      dgemm(&transposed, &plain, &rows, &columns, &k, &one, const_cast<double*>(basis.data()), &k,
            images.data(), &k, &zero, products.data(), &rows);
      for (std::int64_t p = first; p < last; ++p) {
        float* row = out.data() + p * stride;
        double left = space_.square(ids_[p]);
        for (std::int64_t c = 0; c < width; ++c) {
          row[c] = static_cast<float>(products[(p - first) * width + c]);
          left -= static_cast<double>(row[c]) * row[c];
        }
        // The coordinates are rounded, by a unit of the length at most; that moves as much into the rest.
        if (rest) {
          left = std::max(left, 0.0) + 8 * unit * space_.square(ids_[p]);
          row[width] = static_cast<float>(std::sqrt(left) * (1 + 2 * unit));
        }
      }
    });
    return out;
  }

  const Space<T>& space_;
  std::vector<std::int32_t>& ids_;
  std::int64_t width_;
  std::vector<float> sketch_;
};

}  // namespace agglo
