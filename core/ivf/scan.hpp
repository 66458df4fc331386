// Which points may be the closest of which, by visits of points to cells.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "ivf/codes.hpp"
#include "ivf/partition.hpp"
#include "neighbors/exact.hpp"
#include "points/rows.hpp"

namespace agglo {

// What is left of every point's image without the centre of its cell, coded, cell by cell. Differences within
// a cell are so coded as finely as they are small, however far from each other the cells are.
class CodedCells {
 public:
  CodedCells(const Images& images, const Partition& cells, bool product, ThreadPool& pool,
             const Report& report);

  // Slots are columns of panels; the last of a cell may be empty, and no score passes with such a one.
  std::int64_t begin(std::int64_t cell) const { return kPanel * panels_[cell]; }
  std::int64_t size(std::int64_t cell) const { return kPanel * (panels_[cell + 1] - panels_[cell]); }
  const std::uint8_t* codes(std::int64_t cell) const { return codes_.data() + begin(cell) * coded_; }
  const float* scales() const { return scales_.data(); }
  const float* shifts() const { return shifts_.data(); }
  std::int32_t place(std::int64_t slot) const { return places_[slot]; }
  std::int64_t coded() const { return coded_; }

 private:
  std::int64_t coded_;
  std::vector<std::int64_t> panels_;  // where those of each cell begin
  Array<std::uint8_t> codes_;
  std::vector<float> scales_, shifts_;
  std::vector<std::int32_t> places_;
};

// One worker's visits. The score of a pair is about its closeness: the product of the codes for that of the
// images.
class Visitor {
 public:
  Visitor(const Images& images, const Partition& cells, const CodedCells& coded, bool product)
      : images_(images), cells_(cells), coded_(coded), product_(product) {}

  // Lets every member of a cell visit the `visits` cells closest to it, and its own, and calls
  // take(place, slots) with the `keep` slots of the best scores, or all if they are fewer, in no order.
  template <class Take>
  void visit(std::int64_t cell, std::int64_t visits, std::int64_t keep, Take&& take) {
    const auto members = cells_.members(cell);
    images_.gather(members, rows_);
    look(members.size(), cell, visits, keep);
    for (std::size_t i = 0; i < members.size(); ++i)
      take(members[i], std::span<const std::int32_t>(sieves_[i].slots, sieves_[i].count));
  }

  // The same for guests whose closest cell it is, by the numbers of their rows in `images`.
  template <class Take>
  void visit(std::int64_t cell, std::span<const std::int32_t> guests, const float* images,
             std::int64_t visits, std::int64_t keep, Take&& take) {
    const std::int64_t width = images_.width();
    rows_.resize(std::max<std::size_t>(rows_.size(), guests.size() * width));
    for (std::size_t i = 0; i < guests.size(); ++i)
      std::copy_n(images + guests[i] * width, width, rows_.data() + i * width);
    look(guests.size(), cell, visits, keep);
    for (std::size_t i = 0; i < guests.size(); ++i)
      take(guests[i], std::span<const std::int32_t>(sieves_[i].slots, sieves_[i].count));
  }

  // The scores of a place with all that are in the `visits` cells closest to it, its home first. Cell r of
  // `order` has the scores from begins[r] on.
  struct Scores {
    std::vector<std::int32_t> order;
    std::vector<std::int64_t> begins;
    std::vector<float> scores;
  };
  void score(std::int32_t place, std::int64_t visits, Scores& out);

 private:
  void rank(std::int64_t visitors, std::span<const std::int32_t> near);
  void look(std::size_t visitors, std::int64_t cell, std::int64_t visits, std::int64_t keep);
  void compare(std::int64_t visited, std::int64_t keep);
  void squeeze(std::size_t i, std::int64_t keep);

  const Images& images_;
  const Partition& cells_;
  const CodedCells& coded_;
  const bool product_;

  std::vector<float> rows_, centers_, ranks_, left_;  // of the visitors; of the cells around; their scores
  std::vector<std::vector<std::int32_t>> guests_;     // who visits each of the cells around
  std::vector<std::int32_t> visitors_, products_, slots_;
  std::vector<std::int8_t> codes_;
  std::vector<Code> coded_rows_;
  std::vector<float> scores_, bars_;
  std::vector<Sieve> sieves_;
};

}  // namespace agglo
