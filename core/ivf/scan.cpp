#include "ivf/scan.hpp"

#include <algorithm>
#include <numeric>

#include "simd/dot.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kRoom = 6;  // capacity of a reservoir, as a multiple of n_candidates
constexpr std::int64_t kRows = 8;  // number of rows that are multiplied by an inverted list at once

}  // namespace

CodedLists::CodedLists(const RowSource& source, const Partition& partition, bool product, ThreadPool& pool,
                       const Report& report)
    : width_(code_width(source.width())), panels_(partition.count() + 1, 0) {
  for (std::int64_t c = 0; c < partition.count(); ++c)
    panels_[c + 1] =
        panels_[c] + (static_cast<std::int64_t>(partition.members(c).size()) + kPanel - 1) / kPanel;
  const std::int64_t slots = kPanel * panels_.back(), width = source.width();
  codes_.resize(slots * width_);
  scales_.assign(slots, 0.0f);
  biases_.assign(slots, kInfinity);
  positions_.assign(slots, -1);
  pool.run(
      partition.count(),
      [&](std::int64_t list, int) {
        thread_local std::vector<float> rows, residual;
        thread_local std::vector<std::int8_t> code;
        const auto members = partition.members(list);
        const float* centroid = partition.centroid(list);
        source.gather(members, rows);
        residual.resize(width);
        code.resize(width_);
        for (std::size_t i = 0; i < members.size(); ++i) {
          const float* row = rows.data() + i * width;
          const std::int64_t slot = begin(list) + static_cast<std::int64_t>(i);
          const Code parameters = encode(row, centroid, width, false, residual.data(), code.data());
          store_code(code.data(), width_, static_cast<std::int64_t>(i), codes_.data() + begin(list) * width_);
          scales_[slot] = parameters.scale;
          // The bias of a coded row y is minus the part of the similarity that depends only on y.
          // For a query x, the centroid c and dot products: x.y = (x - c).(y - c) + c.(y - c) + x.c.
          // For distances: -|x - y|^2 / 2 = (x - c).(y - c) - |x - c|^2 / 2 - |y - c|^2 / 2.
          biases_[slot] = source.rest(members[i]) - parameters.bias;
          if (product) {
            float sum = 0;
            for (std::int64_t j = 0; j < width; ++j) sum += centroid[j] * residual[j];
            biases_[slot] = -sum;
          }
          positions_[slot] = members[i];
        }
      },
      report);
}

// Computes the scores of all rows with the centroids of some lists.
void IvfScanner::score_lists(std::int64_t n_rows, std::span<const std::int32_t> lists) {
  const std::int64_t width = source_.width(), n_lists = static_cast<std::int64_t>(lists.size());
  centroids_.resize(lists.size() * width);
  for (std::size_t e = 0; e < lists.size(); ++e)
    std::copy_n(partition_.centroid(lists[e]), width, centroids_.data() + e * width);
  multiply_rows(rows_.data(), n_rows, centroids_.data(), n_lists, width, list_scores_);
  for (std::int64_t i = 0; i < n_rows; ++i)
    for (std::int64_t e = 0; e < n_lists; ++e) list_scores_[i * n_lists + e] -= partition_.offset(lists[e]);
  residual_.resize(width);
}

// Collects the candidates of all rows. All rows have the same nearest list `list`.
void IvfScanner::probe(std::size_t n_rows, std::int64_t list, std::int64_t n_probes,
                       std::int64_t n_candidates) {
  // A row probes only lists near `list`. So it may miss neighbours, and the measured recall includes this.
  auto lists = partition_.nearest(list);
  lists = lists.first(std::min<std::size_t>(lists.size(), 48 + 8 * n_probes));
  const auto n_lists = static_cast<std::int64_t>(lists.size());
  const std::int64_t capacity = kRoom * n_candidates + kPanel;
  score_lists(static_cast<std::int64_t>(n_rows), lists);
  // The initial thresholds are larger than -infinity, the score of empty slots.
  thresholds_.assign(n_rows, std::numeric_limits<float>::lowest());
  scores_.resize(n_rows * capacity);
  slots_.resize(n_rows * capacity);
  reservoirs_.resize(n_rows);
  probing_.resize(lists.size());
  for (auto& rows : probing_) rows.clear();
  for (std::size_t i = 0; i < n_rows; ++i) {
    reservoirs_[i] = {scores_.data() + i * capacity, slots_.data() + i * capacity, 0, capacity};
    const float* scores = list_scores_.data() + i * n_lists;
    const float threshold = n_probes < n_lists ? top_k_threshold(n_probes, scores, n_lists) : -kInfinity;
    for (std::int64_t e = 0; e < n_lists; ++e)
      if (scores[e] >= threshold || e == 0) probing_[e].push_back(static_cast<std::int32_t>(i));
  }
  for (std::size_t e = 0; e < lists.size(); ++e) {
    if (probing_[e].empty()) continue;
    std::swap(probing_rows_, probing_[e]);
    scan_list(lists[e], n_candidates);
  }
  for (std::size_t i = 0; i < n_rows; ++i)
    if (reservoirs_[i].count > n_candidates) prune(i, n_candidates);
}

// Computes the scores of all members of a list with all rows that probe the list.
void IvfScanner::scan_list(std::int64_t list, std::int64_t n_candidates) {
  const std::int64_t width = source_.width(), code_size = coded_.width(), begin = coded_.begin(list),
                     size = coded_.size(list);
  products_.resize(kRows * size);
  codes_.resize(kRows * code_size);
  row_codes_.resize(kRows);
  for (std::size_t top = 0; top < probing_rows_.size(); top += kRows) {
    const std::size_t rows = std::min<std::size_t>(kRows, probing_rows_.size() - top);
    for (std::size_t r = 0; r < rows; ++r)
      row_codes_[r] = encode(rows_.data() + probing_rows_[top + r] * width, partition_.centroid(list), width,
                             product_, residual_.data(), codes_.data() + r * code_size);
    code_products(codes_.data(), static_cast<std::int64_t>(rows), code_size, coded_.codes(list),
                  size / kPanel, products_.data(), size);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::int32_t i = probing_rows_[top + r];
      for (std::int64_t c = 0;;) {
        c = select_codes(products_.data() + r * size, coded_.scales() + begin, coded_.biases() + begin,
                         row_codes_[r].scale, row_codes_[r].bias, thresholds_[i], c, size,
                         static_cast<std::int32_t>(begin), reservoirs_[i]);
        if (c == size) break;
        prune(i, n_candidates);
      }
    }
  }
}

// Keeps the n_candidates largest scores of row i. Raises the threshold of row i to the smallest kept score.
void IvfScanner::prune(std::size_t i, std::int64_t n_candidates) {
  Reservoir& reservoir = reservoirs_[i];
  const float threshold = top_k_threshold(n_candidates, reservoir.scores, reservoir.count);
  std::int64_t kept = 0;
  for (std::int64_t s = 0; s < reservoir.count; ++s) {
    reservoir.scores[kept] = reservoir.scores[s];
    reservoir.slots[kept] = reservoir.slots[s];
    kept += reservoir.scores[s] >= threshold;
  }
  reservoir.count = std::min(kept, n_candidates);  // if scores are equal, keep the first slots
  thresholds_[i] = threshold;
}

void IvfScanner::score_probes(std::int32_t position, std::int64_t n_probes, Scores& out) {
  const std::int64_t width = source_.width();
  const auto lists = partition_.nearest(partition_.list(position));
  source_.gather({&position, 1}, rows_);
  score_lists(1, lists);
  std::vector<std::int32_t> order(lists.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin() + 1, order.end(),
                   [&](std::int32_t a, std::int32_t b) { return list_scores_[a] > list_scores_[b]; });
  order.resize(n_probes);
  out.lists.clear();
  out.scores.clear();
  out.begins.assign(1, 0);
  codes_.resize(kRows * coded_.width());
  for (const std::int32_t e : order) {
    const std::int64_t begin = coded_.begin(lists[e]), size = coded_.size(lists[e]);
    const Code code =
        encode(rows_.data(), partition_.centroid(lists[e]), width, product_, residual_.data(), codes_.data());
    products_.resize(std::max<std::size_t>(products_.size(), size));
    code_products(codes_.data(), 1, coded_.width(), coded_.codes(lists[e]), size / kPanel, products_.data(),
                  size);
    const std::size_t before = out.scores.size();
    out.scores.resize(before + size + kPanel);
    slots_.resize(std::max<std::size_t>(slots_.size(), size + kPanel));
    Reservoir reservoir{out.scores.data() + before, slots_.data(), 0, size + kPanel};
    // The threshold -infinity also selects empty slots. So the scores are in the order of the slots.
    select_codes(products_.data(), coded_.scales() + begin, coded_.biases() + begin, code.scale, code.bias,
                 -kInfinity, 0, size, static_cast<std::int32_t>(begin), reservoir);
    out.scores.resize(before + reservoir.count);
    out.lists.push_back(lists[e]);
    out.begins.push_back(static_cast<std::int64_t>(out.scores.size()));
  }
}

}  // namespace agglo
