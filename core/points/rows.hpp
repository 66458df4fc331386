// How the search by cells sees the points: as rows of float32 numbers, whatever they are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/blas.hpp"
#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"
#include "points/space.hpp"
#include "simd/product.hpp"

namespace agglo {

// Rows of places 0..n-1. Closeness is about the product of two rows, less the rests of both, and under
// distances less half their squares.
class Images {
 public:
  Images(std::int64_t n, std::int64_t width) : n_(n), width_(width) {}
  virtual ~Images() = default;
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;

  std::int64_t n() const { return n_; }
  std::int64_t width() const { return width_; }

  virtual void gather(std::span<const std::int32_t> places, std::vector<float>& rows) const = 0;
  virtual float rest(std::int64_t) const { return 0; }

  // Gives back memory, once the rests are no longer needed and rows seldom: those are then made anew.
  virtual void drop() {}

 private:
  const std::int64_t n_, width_;
};

// The images of a space as they are.
template <class T>
class WholeImages final : public Images {
 public:
  WholeImages(const Space<T>& space, std::span<const std::int32_t> ids)
      : Images(static_cast<std::int64_t>(ids.size()), space.d()), space_(space), ids_(ids) {}

  void gather(std::span<const std::int32_t> places, std::vector<float>& rows) const override {
    agglo::gather(space_, ids_, places, rows);
  }

 private:
  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
};

// Their coordinates in an orthonormal basis of fewer directions. Products then leave out what is outside of
// these; the squares do not, for they are known.
template <class T>
class ProjectedImages final : public Images {
 public:
  ProjectedImages(const Space<T>& space, std::span<const std::int32_t> ids, std::span<const float> basis,
                  bool distances, ThreadPool& pool, const Report& report)
      : Images(static_cast<std::int64_t>(ids.size()), static_cast<std::int64_t>(basis.size()) / space.d()),
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
          std::vector<std::int32_t> places(last - first);
          for (std::int64_t p = first; p < last; ++p) places[p - first] = static_cast<std::int32_t>(p);
          project(places, rows);
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

  void gather(std::span<const std::int32_t> places, std::vector<float>& rows) const override {
    constexpr std::size_t ahead = 4;
    if (rows_.empty()) return project(places, rows);
    if (rows.size() < places.size() * width()) rows.resize(places.size() * width());
    for (std::size_t s = 0; s < places.size(); ++s) {
      if (s + ahead < places.size()) prefetch(rows_.data() + places[s + ahead] * width(), width());
      std::copy_n(rows_.data() + places[s] * width(), width(), rows.data() + s * width());
    }
  }
  float rest(std::int64_t p) const override { return rests_.empty() ? 0 : rests_[p]; }
  void drop() override {
    rows_ = Array<float>();  // {} would be an assignment of no numbers, which keeps the room for them
    rests_ = std::vector<float>();
  }

 private:
  void project(std::span<const std::int32_t> places, std::vector<float>& rows) const {
    thread_local std::vector<float> images;
    agglo::gather(space_, ids_, places, images);
    multiply_rows(images.data(), static_cast<std::int64_t>(places.size()), basis_.data(), width(), space_.d(),
                  rows);
  }

  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
  const std::span<const float> basis_;
  Array<float> rows_;
  std::vector<float> rests_;
};

}  // namespace agglo
