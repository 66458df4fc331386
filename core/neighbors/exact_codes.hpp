// int8 codes of the rows of an exact search. Dot products of codes give upper bounds of similarities.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "neighbors/exact_sketch.hpp"
#include "simd/codes.hpp"
#include "simd/dispatch.hpp"

namespace agglo {

// Return whether dot products of int8 codes are possible and faster than dot products of rows by BLAS.
// With more than 2^15 columns, the sums of the products might not fit into 32 bits.
inline bool codes_are_fast(std::int64_t width) { return simd_level() != Simd::plain && width <= 1 << 15; }

// The int8 codes of n rows. A row is addressed by its position.
//
// Let m be the mean of all rows, and let u and v be two rows.
// w = scale * code approximates u - m. The error of this approximation is e = u - m - w.
// Let w' and e' be the approximation and the error for v - m.
// Then u.v = w.w' + (u.m + v.m - m.m) + (w.e' + e.(v - m)).
// The first term, w.w', is a product of integers times both scales.
// The second term is a sum of one number per row.
// By the Cauchy-Schwarz inequality, the third term is at most |w||e'| + |e||v - m|.
// Let N = max(|w|, |u - m|) for each row, and let r be any positive number.
// Then the third term is at most the sum of (r N^2 + |e|^2 / r) / 2 over both rows.
// So an upper bound of the similarity is w.w' plus one number per row, the bias.
class CodedRows {
 public:
  // `offset` has one number per row. The offset of a row is subtracted from all similarities of the row.
  CodedRows(const OrderedRows& rows, std::int64_t n, const float* offset, ThreadPool& pool)
      : width_(rows.width()),
        coded_(code_width(width_)),
        scale_(n),
        bias_(n),
        panels_((n + kPanel - 1) / kPanel * kPanel * coded_) {
    const std::vector<float> mean = mean_row(rows, n);
    double square = 0;
    for (const float x : mean) square += static_cast<double>(x) * x;
    std::vector<float> length(n), error(n);  // N^2 and |e|^2 of each row (see above)
    std::fill(panels_.begin(), panels_.end(), std::uint8_t{0});
    pool.ranges(n, kChunk, [&](std::int64_t first, std::int64_t last, int) {
      std::vector<float> scratch, residual(width_);
      std::vector<std::int8_t> code(coded_);
      const float* row = rows.comparable(first, last, scratch);
      for (std::int64_t p = first; p < last; ++p, row += width_) {
        scale_[p] = encode(row, mean.data(), width_, true, residual.data(), code.data(), format_).scale;
        store_code(code.data(), coded_, p, panels_.data(), format_);
        double product = 0, whole = 0, kept = 0, lost = 0;
        for (std::int64_t j = 0; j < width_; ++j) {
          const double exact = static_cast<double>(row[j]) - mean[j],
                       rounded = static_cast<double>(scale_[p]) * code[j];
          product += static_cast<double>(row[j]) * mean[j];
          whole += exact * exact;
          kept += rounded * rounded;
          lost += (exact - rounded) * (exact - rounded);
        }
        length[p] = static_cast<float>(std::max(whole, kept));
        error[p] = static_cast<float>(lost);
        bias_[p] = static_cast<float>(product - square / 2 - offset[p]);
      }
    });
    double lengths = 0, errors = 0;
    for (std::int64_t p = 0; p < n; ++p) lengths += length[p], errors += error[p];
    const double ratio = lengths > 0 && errors > 0 ? std::sqrt(errors / lengths) : 1.0;
    // The callers compute the upper bound of a similarity (see below) in float32, so the bias includes an
    // allowance for the rounding error. This error is below 16 roundings of the numbers that are added here.
    const double unit = std::numeric_limits<float>::epsilon() / 2;
    for (std::int64_t p = 0; p < n; ++p) {
      const double slack = (ratio * length[p] + error[p] / ratio) / 2;
      const double rounding =
          16 * unit * (length[p] + square + slack + std::abs(offset[p]) + std::abs(bias_[p]));
      bias_[p] = static_cast<float>(bias_[p] + slack + rounding);
    }
  }

  // The upper bound of the similarity of the rows at positions p and q is
  //   product * scale(p) * scale(q) + bias(p) + bias(q).
  // Here, `product` is the dot product of the codes of the two rows.
  const float* scale() const { return scale_.data(); }
  const float* bias() const { return bias_.data(); }

  // Set products[i * stride + j] to the dot product of the codes at the positions first + i and left + j.
  // `left` and `stride` must be multiples of kPanel.
  void multiply(std::int64_t first, std::int64_t last, std::int64_t left, std::int64_t stride,
                std::vector<std::int8_t>& scratch, std::vector<std::int32_t>& products) const {
    scratch.resize((last - first) * coded_);
    products.resize((last - first) * stride);
    for (std::int64_t p = first; p < last; ++p)
      load_code(panels_.data(), coded_, p, scratch.data() + (p - first) * coded_, format_);
    code_products(scratch.data(), last - first, coded_, panels_.data() + left * coded_, stride / kPanel,
                  products.data(), stride, format_);
  }

 private:
  static constexpr std::int64_t kChunk = 256;    // rows per chunk of parallel work, a multiple of kPanel
  static constexpr std::int64_t kSample = 1024;  // number of rows in the sample whose mean is used as m

  std::vector<float> mean_row(const OrderedRows& rows, std::int64_t n) const {
    const std::int64_t sample = std::min(n, kSample);
    std::vector<double> sum(width_, 0.0);
    std::vector<float> scratch;
    for (std::int64_t s = 0; s < sample; ++s) {
      const std::int64_t p = s * n / sample;
      const float* row = rows.comparable(p, p + 1, scratch);
      for (std::int64_t j = 0; j < width_; ++j) sum[j] += row[j];
    }
    std::vector<float> mean(width_);
    for (std::int64_t j = 0; j < width_; ++j)
      mean[j] = static_cast<float>(sum[j] / static_cast<double>(sample));
    return mean;
  }

  const CodeFormat format_ = simd_level() == Simd::avx512 ? kLongCodes : kShortCodes;
  const std::int64_t width_, coded_;
  std::vector<float> scale_, bias_;
  Array<std::uint8_t> panels_;
};

}  // namespace agglo
