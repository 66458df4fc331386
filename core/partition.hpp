// Points in cells of a few hundred close ones, and which cells are close to which point.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neighbors.hpp"
#include "parallel.hpp"
#include "space.hpp"

namespace agglo {

// A partition of places 0..n-1 into cells. Invariants:
//  1. every place has one home, a cell of at least `least` members (or the only one) and at most
//  most_of(size);
//  2. probe(p, r) for r in [0, ranks) are different cells, those that are closest to p first, among the cells
//     that are close to where p was first put.
// It is a function of the points, the arguments and BLAS; the number of threads cannot be seen in it.
class Partition {
 public:
  static constexpr std::int64_t kRanks = 24;

  // Cells of about `size` points, which must be at least 4 * least.
  template <class T>
  Partition(const Space<T>& space, std::span<const std::int32_t> ids, std::int64_t size, std::int64_t least,
            bool by_product, std::uint64_t seed, Gemm<float>* sgemm, Team& team, const Report& report);

  static std::int64_t most_of(std::int64_t size) { return size + size / 2; }

  std::int64_t count() const { return static_cast<std::int64_t>(indptr_.size()) - 1; }
  std::int64_t ranks() const { return ranks_; }
  std::int32_t home(std::int64_t p) const { return home_[p]; }
  std::span<const std::int32_t> members(std::int64_t cell) const {
    return std::span(members_).subspan(indptr_[cell], indptr_[cell + 1] - indptr_[cell]);
  }
  std::int32_t probe(std::int64_t p, std::int64_t rank) const {
    return near_[leaf_[p] * width_ + choice_[p * ranks_ + rank]];
  }
  // The rank of a cell for p, or ranks() if it is not among them.
  std::int64_t rank(std::int64_t p, std::int32_t cell) const {
    std::int64_t r = 0;
    while (r < ranks_ && probe(p, r) != cell) ++r;
    return r;
  }

 private:
  void settle(std::int64_t kept, std::int64_t most, std::int64_t least);

  std::vector<std::int64_t> indptr_;          // of the cells, in members_
  std::vector<std::int32_t> members_, home_;  // places by cell, increasing; the cell of each place
  std::vector<std::int32_t> leaf_;            // the cell that a place was first put in
  std::vector<std::int32_t> near_;            // width_ cells close to each cell
  std::vector<std::uint8_t> choice_;          // which ranks_ of these are closest to a place
  std::int64_t width_ = 0, ranks_ = 0;
};

}  // namespace agglo
