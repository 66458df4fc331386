#include "ivf/scan.hpp"

#include <algorithm>
#include <numeric>

#include "simd/dot.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kRoom = 6;  // candidates for each that is kept, before it is decided which are
constexpr std::int64_t kRows = 8;  // rows of a visit multiplied at a time

}  // namespace

CodedCells::CodedCells(const Images& images, const Partition& cells, bool product, ThreadPool& pool,
                       const Report& report)
    : coded_(coded_width(images.width())), panels_(cells.count() + 1, 0) {
  for (std::int64_t c = 0; c < cells.count(); ++c)
    panels_[c + 1] = panels_[c] + (static_cast<std::int64_t>(cells.members(c).size()) + kPanel - 1) / kPanel;
  const std::int64_t slots = kPanel * panels_.back(), width = images.width();
  codes_.resize(slots * coded_);
  scales_.assign(slots, 0.0f);
  shifts_.assign(slots, kInfinity);
  places_.assign(slots, -1);
  pool.run(
      cells.count(),
      [&](std::int64_t cell, int) {
        thread_local std::vector<float> rows, left;
        thread_local std::vector<std::int8_t> code;
        const auto members = cells.members(cell);
        const float* center = cells.center(cell);
        images.gather(members, rows);
        left.resize(width);
        code.resize(coded_);
        for (std::size_t i = 0; i < members.size(); ++i) {
          const float* row = rows.data() + i * width;
          const std::int64_t slot = begin(cell) + static_cast<std::int64_t>(i);
          const Code made = encode(row, center, width, false, left.data(), code.data());
          put(code.data(), coded_, static_cast<std::int64_t>(i), codes_.data() + begin(cell) * coded_);
          scales_[slot] = made.scale;
          // x . y = (x - c) . (y - c) + c . (y - c) + x . c, and -|x - y|^2 / 2 likewise with squares.
          shifts_[slot] = images.rest(members[i]) - made.lift;
          if (product) {
            float sum = 0;
            for (std::int64_t j = 0; j < width; ++j) sum += center[j] * left[j];
            shifts_[slot] = -sum;
          }
          places_[slot] = members[i];
        }
      },
      report);
}

// The scores of the visitors, whose rows are at hand, with the centres of the cells around.
void Visitor::rank(std::int64_t m, std::span<const std::int32_t> near) {
  const std::int64_t width = images_.width(), around = static_cast<std::int64_t>(near.size());
  centers_.resize(near.size() * width);
  for (std::size_t e = 0; e < near.size(); ++e)
    std::copy_n(cells_.center(near[e]), width, centers_.data() + e * width);
  multiply_rows(rows_.data(), m, centers_.data(), around, width, ranks_);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t e = 0; e < around; ++e) ranks_[i * around + e] -= cells_.offset(near[e]);
  left_.resize(width);
}

void Visitor::look(std::size_t m, std::int64_t cell, std::int64_t visits, std::int64_t keep) {
  // Cells closest to a visitor are among those close to its own; among how many is measured with the rest.
  auto near = cells_.near(cell);
  near = near.first(std::min<std::size_t>(near.size(), 48 + 8 * visits));
  const std::size_t around = near.size();
  const std::int64_t room = kRoom * keep + kPanel;
  rank(static_cast<std::int64_t>(m), near);
  bars_.assign(m, std::numeric_limits<float>::lowest());  // which empty slots do not reach
  scores_.resize(m * room);
  slots_.resize(m * room);
  sieves_.resize(m);
  guests_.resize(around);
  for (auto& guests : guests_) guests.clear();
  for (std::size_t i = 0; i < m; ++i) {
    sieves_[i] = {scores_.data() + i * room, slots_.data() + i * room, 0, room};
    const float* ranks = ranks_.data() + i * around;
    const float least = visits < static_cast<std::int64_t>(around)
                            ? reached_by(visits, ranks, static_cast<std::int64_t>(around))
                            : -kInfinity;
    for (std::size_t e = 0; e < around; ++e)
      if (ranks[e] >= least || e == 0) guests_[e].push_back(static_cast<std::int32_t>(i));
  }
  for (std::size_t e = 0; e < around; ++e) {
    if (guests_[e].empty()) continue;
    std::swap(visitors_, guests_[e]);
    compare(near[e], keep);
  }
  for (std::size_t i = 0; i < m; ++i)
    if (sieves_[i].count > keep) squeeze(i, keep);
}

// Compares the visitors with all members of a cell.
void Visitor::compare(std::int64_t visited, std::int64_t keep) {
  const std::int64_t width = images_.width(), coded = coded_.coded(), begin = coded_.begin(visited),
                     size = coded_.size(visited);
  products_.resize(kRows * size);
  codes_.resize(kRows * coded);
  coded_rows_.resize(kRows);
  for (std::size_t top = 0; top < visitors_.size(); top += kRows) {
    const std::size_t rows = std::min<std::size_t>(kRows, visitors_.size() - top);
    for (std::size_t r = 0; r < rows; ++r)
      coded_rows_[r] = encode(rows_.data() + visitors_[top + r] * width, cells_.center(visited), width,
                              product_, left_.data(), codes_.data() + r * coded);
    code_products(codes_.data(), static_cast<std::int64_t>(rows), coded, coded_.codes(visited), size / kPanel,
                  products_.data(), size);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::int32_t i = visitors_[top + r];
      for (std::int64_t c = 0;;) {
        c = sift(products_.data() + r * size, coded_.scales() + begin, coded_.shifts() + begin,
                 coded_rows_[r].scale, coded_rows_[r].lift, bars_[i], c, size,
                 static_cast<std::int32_t>(begin), sieves_[i]);
        if (c == size) break;
        squeeze(i, keep);
      }
    }
  }
}

// Keeps the best scores alone and raises the bar to what they reach.
void Visitor::squeeze(std::size_t i, std::int64_t keep) {
  Sieve& sieve = sieves_[i];
  const float bar = reached_by(keep, sieve.scores, sieve.count);
  std::int64_t kept = 0;
  for (std::int64_t s = 0; s < sieve.count; ++s) {
    sieve.scores[kept] = sieve.scores[s];
    sieve.slots[kept] = sieve.slots[s];
    kept += sieve.scores[s] >= bar;
  }
  sieve.count = std::min(kept, keep);  // of more that are equal, the first
  bars_[i] = bar;
}

void Visitor::score(std::int32_t place, std::int64_t visits, Scores& out) {
  const std::int64_t width = images_.width();
  const auto near = cells_.near(cells_.home(place));
  images_.gather({&place, 1}, rows_);
  rank(1, near);
  std::vector<std::int32_t> order(near.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin() + 1, order.end(),
                   [&](std::int32_t a, std::int32_t b) { return ranks_[a] > ranks_[b]; });
  order.resize(visits);
  out.order.clear();
  out.scores.clear();
  out.begins.assign(1, 0);
  codes_.resize(kRows * coded_.coded());
  for (const std::int32_t e : order) {
    const std::int64_t begin = coded_.begin(near[e]), size = coded_.size(near[e]);
    const Code code =
        encode(rows_.data(), cells_.center(near[e]), width, product_, left_.data(), codes_.data());
    products_.resize(std::max<std::size_t>(products_.size(), size));
    code_products(codes_.data(), 1, coded_.coded(), coded_.codes(near[e]), size / kPanel, products_.data(),
                  size);
    const std::size_t before = out.scores.size();
    out.scores.resize(before + size + kPanel);
    slots_.resize(std::max<std::size_t>(slots_.size(), size + kPanel));
    Sieve sieve{out.scores.data() + before, slots_.data(), 0, size + kPanel};
    // Empty slots pass here, that scores be in the order of the slots.
    sift(products_.data(), coded_.scales() + begin, coded_.shifts() + begin, code.scale, code.lift,
         -kInfinity, 0, size, static_cast<std::int32_t>(begin), sieve);
    out.scores.resize(before + sieve.count);
    out.order.push_back(near[e]);
    out.begins.push_back(static_cast<std::int64_t>(out.scores.size()));
  }
}

}  // namespace agglo
