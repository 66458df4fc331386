// Sources of float32 rows for the IVF search: normalized points, or their projections on a basis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "points/space.hpp"
#include "simd/product.hpp"

namespace agglo {

// Write the normalized row of the point ids[p] to `rows`, for each p in `positions`.
// If `rows` is too short, the function resizes it.
inline void gather_normalized(const Space& space, std::span<const std::int32_t> ids,
                              std::span<const std::int32_t> positions, std::vector<float>& rows) {
  constexpr std::size_t ahead = 4;
  const std::int64_t d = space.d();
  if (rows.size() < positions.size() * d) rows.resize(positions.size() * d);
  for (std::size_t s = 0; s < positions.size(); ++s) {
    if (s + ahead < positions.size()) space.prefetch_row(ids[positions[s + ahead]]);
    space.normalize(ids[positions[s]], rows.data() + s * d);
  }
}

// A source of the rows of the distinct points. A point is addressed by its position, from 0 to n - 1.
//
// For dot product and cosine, the similarity of two points is about the dot product of their rows.
// For distances, the similarity of two points is minus half their squared distance.
// It is about the dot product of their rows, minus half the squared length of each row, minus rest() of each
// point.
class RowSource {
 public:
  RowSource(std::int64_t n, std::int64_t width) : n_(n), width_(width) {}
  virtual ~RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;

  std::int64_t n() const { return n_; }
  std::int64_t width() const { return width_; }

  // Write the rows at the given positions to `rows`, one after the other.
  // If `rows` is too short, the function resizes it.
  virtual void gather(std::span<const std::int32_t> positions, std::vector<float>& rows) const = 0;
  // Return half the squared length of that part of the normalized point that its row does not represent.
  virtual float rest(std::int64_t) const { return 0; }

  // Free the stored rows and rests. Afterwards, each call of gather() computes the rows again.
  virtual void drop() {}

 private:
  const std::int64_t n_, width_;
};

// A source of the normalized rows themselves: no coordinate is left out, so rest() is 0.
class FullRows final : public RowSource {
 public:
  FullRows(const Space& space, std::span<const std::int32_t> ids)
      : RowSource(static_cast<std::int64_t>(ids.size()), space.d()), space_(space), ids_(ids) {}

  void gather(std::span<const std::int32_t> positions, std::vector<float>& rows) const override {
    gather_normalized(space_, ids_, positions, rows);
  }

 private:
  const Space& space_;
  const std::span<const std::int32_t> ids_;
};

// A source of the coordinates of the normalized rows in an orthonormal basis.
// The basis has fewer vectors than the rows have columns.
//
// Dot products of coordinates ignore the part of each row that is orthogonal to the basis.
// For distances, rest() returns half the squared length of this part. For dot product and cosine, it returns
// 0.
class ProjectedRows final : public RowSource {
 public:
  ProjectedRows(const Space& space, std::span<const std::int32_t> ids, std::span<const float> basis,
                bool distances, ThreadPool& pool, const Report& report)
      : RowSource(static_cast<std::int64_t>(ids.size()), static_cast<std::int64_t>(basis.size()) / space.d()),
        space_(space),
        ids_(ids),
        basis_(basis),
        rows_(ids.size() * width()),
        rests_(distances ? ids.size() : 0) {
    constexpr std::int64_t block = 256;
    pool.ranges(
        n(), block,
        [&](std::int64_t first, std::int64_t last, int) {
          thread_local std::vector<float> rows;
          std::vector<std::int32_t> positions(last - first);
          for (std::int64_t p = first; p < last; ++p) positions[p - first] = static_cast<std::int32_t>(p);
          project(positions, rows);
          std::copy_n(rows.data(), (last - first) * width(), rows_.data() + first * width());
          if (!distances) return;
          for (std::int64_t p = first; p < last; ++p) {
            const float* row = rows_.data() + p * width();
            double square = 0;
            for (std::int64_t j = 0; j < width(); ++j) square += static_cast<double>(row[j]) * row[j];
            rests_[p] = static_cast<float>(std::max(0.0, space.square(ids[p]) - square) / 2);
          }
        },
        report);
  }

  void gather(std::span<const std::int32_t> positions, std::vector<float>& rows) const override {
    constexpr std::size_t ahead = 4;
    if (rows_.empty()) return project(positions, rows);
    if (rows.size() < positions.size() * width()) rows.resize(positions.size() * width());
    for (std::size_t s = 0; s < positions.size(); ++s) {
      if (s + ahead < positions.size()) prefetch(rows_.data() + positions[s + ahead] * width(), width());
      std::copy_n(rows_.data() + positions[s] * width(), width(), rows.data() + s * width());
    }
  }
  float rest(std::int64_t p) const override { return rests_.empty() ? 0 : rests_[p]; }
  void drop() override {
    rows_ = Array<float>();  // `rows_ = {}` would not free the memory
    rests_ = std::vector<float>();
  }

 private:
  void project(std::span<const std::int32_t> positions, std::vector<float>& rows) const {
    thread_local std::vector<float> normalized;
    gather_normalized(space_, ids_, positions, normalized);
    multiply_rows(normalized.data(), static_cast<std::int64_t>(positions.size()), basis_.data(), width(),
                  space_.d(), rows);
  }

  const Space& space_;
  const std::span<const std::int32_t> ids_;
  const std::span<const float> basis_;
  Array<float> rows_;
  std::vector<float> rests_;
};

}  // namespace agglo
