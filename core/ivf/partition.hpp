// Points in cells of a few hundred close ones, and which cells are close to which.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "ivf/centroids.hpp"
#include "neighbors/exact.hpp"
#include "points/rows.hpp"

namespace agglo {

// A partition of places 0..n-1 into cells. Invariants:
//  1. every place has one home, a cell of at least `least` members (or the only one) and at most
//  most_of(size);
//  2. near(c) are different cells, those closest to c first; c is the first of them.
// It is a function of the images, the arguments and BLAS; the number of threads cannot be seen in it.
class Partition {
 public:
  static constexpr std::int64_t kNear = 512;

  // Cells of about `size` points, which must be at least 4 * least. A place whose closest cell is far from
  // its own is found one if that is cheap, or if it is to be thorough.
  Partition(const Images& images, std::int64_t size, std::int64_t least, bool thorough, bool by_product,
            std::uint64_t seed, ThreadPool& pool, const Report& report);

  // Cells that are known: the home of each place, every cell being that of some.
  Partition(const Images& images, std::vector<std::int32_t> homes, bool by_product, ThreadPool& pool,
            const Report& report);

  static std::int64_t most_of(std::int64_t size) { return size + size / 2; }

  bool thorough() const { return thorough_; }
  std::int64_t count() const { return static_cast<std::int64_t>(indptr_.size()) - 1; }
  std::int32_t home(std::int64_t p) const { return home_[p]; }
  std::span<const std::int32_t> members(std::int64_t cell) const {
    return std::span(members_).subspan(indptr_[cell], indptr_[cell + 1] - indptr_[cell]);
  }
  // The mean of its members' images, those far from the rest left out, so that most members are as close
  // to it as they are to each other; and half its squared length, or 0 if it is products that count.
  const float* center(std::int64_t cell) const { return centers_.row(cell); }
  float offset(std::int64_t cell) const { return centers_.offsets[cell]; }
  std::span<const std::int32_t> near(std::int64_t cell) const {
    return std::span(near_).subspan(cell * reach_, reach_);
  }

 private:
  void find_centers(const Images& images, bool squares, ThreadPool& pool, const Report& report);
  void find_near(std::int64_t reach, ThreadPool& pool, const Report& report);
  double astray(const Images& images, ThreadPool& pool) const;
  std::vector<std::int32_t> closest_cells(const Images& images, bool lost, ThreadPool& pool,
                                          const Report& report) const;
  void settle(std::span<const std::int32_t> closest, std::int64_t most, std::int64_t least);

  std::vector<std::int64_t> indptr_;          // of the cells, in members_
  std::vector<std::int32_t> members_, home_;  // places by cell, increasing; the cell of each place
  std::vector<std::int32_t> near_;            // reach_ cells close to each cell
  Centers centers_;
  std::int64_t reach_ = 0;
  bool thorough_ = false;  // whether it was
};

}  // namespace agglo
