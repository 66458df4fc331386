// The scan of inverted lists: find candidates for the nearest neighbours by products of int8 codes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "ivf/partition.hpp"
#include "points/rows.hpp"
#include "simd/codes.hpp"

namespace agglo {

// The int8 residual codes of all points, sorted by inverted list.
// The residual of a point is its row minus the centroid of its list.
// Residuals are small. So int8 codes are precise even if the lists are far from each other.
class CodedLists {
 public:
  CodedLists(const RowSource& source, const Partition& partition, bool product, ThreadPool& pool,
             const Report& report);

  // The codes of a list are stored in panels of kPanel codes (simd/codes.hpp).
  // A slot is the number of a code, counted over the panels of all lists.
  // Empty slots fill up the last panel of a list. Their score is -infinity.
  std::int64_t begin(std::int64_t list) const { return kPanel * panels_[list]; }
  std::int64_t size(std::int64_t list) const { return kPanel * (panels_[list + 1] - panels_[list]); }
  const std::uint8_t* codes(std::int64_t list) const { return codes_.data() + begin(list) * width_; }
  const float* scales() const { return scales_.data(); }
  const float* biases() const { return biases_.data(); }
  std::int32_t position(std::int64_t slot) const { return positions_[slot]; }
  // Return the number of bytes of an int8 code.
  std::int64_t width() const { return width_; }

 private:
  std::int64_t width_;
  std::vector<std::int64_t> panels_;  // the first panel of each list
  Array<std::uint8_t> codes_;
  std::vector<float> scales_, biases_;
  std::vector<std::int32_t> positions_;
};

// Scans inverted lists. Each worker has its own scanner.
// The score of two points approximates the similarity of the points.
// It is computed from the product of the int8 codes instead of the product of the residuals.
class IvfScanner {
 public:
  IvfScanner(const RowSource& source, const Partition& partition, const CodedLists& coded, bool product)
      : source_(source), partition_(partition), coded_(coded), product_(product) {}

  // For every member of a list, scan the `n_probes` lists nearest to the member, and the list itself.
  // Calls visit(position, slots) for every member. `slots` holds the candidates of the member, in no
  // particular order: the slots with the n_candidates largest scores. There may be fewer candidates.
  template <class Visit>
  void scan(std::int64_t list, std::int64_t n_probes, std::int64_t n_candidates, Visit&& visit) {
    const auto members = partition_.members(list);
    source_.gather(members, rows_);
    probe(members.size(), list, n_probes, n_candidates);
    visit_candidates(members, visit);
  }

  // Scan the nearest lists of queries. All these queries have the same nearest list `list`.
  // `queries` holds the indices of the queries' rows in `rows`.
  template <class Visit>
  void scan(std::int64_t list, std::span<const std::int32_t> queries, const float* rows,
            std::int64_t n_probes, std::int64_t n_candidates, Visit&& visit) {
    const std::int64_t width = source_.width();
    rows_.resize(std::max<std::size_t>(rows_.size(), queries.size() * width));
    for (std::size_t i = 0; i < queries.size(); ++i)
      std::copy_n(rows + queries[i] * width, width, rows_.data() + i * width);
    probe(queries.size(), list, n_probes, n_candidates);
    visit_candidates(queries, visit);
  }

  // The scores of the point at a position with all slots of its `n_probes` nearest lists.
  // The first list is the list of the position itself. The scores of lists[r] start at begins[r].
  struct Scores {
    std::vector<std::int32_t> lists;
    std::vector<std::int64_t> begins;
    std::vector<float> scores;
  };
  void score_probes(std::int32_t position, std::int64_t n_probes, Scores& out);

 private:
  template <class Visit>
  void visit_candidates(std::span<const std::int32_t> ids, Visit&& visit) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      visit(ids[i], std::span<const std::int32_t>(reservoirs_[i].slots, reservoirs_[i].count));
  }

  void score_lists(std::int64_t n_rows, std::span<const std::int32_t> lists);
  void probe(std::size_t n_rows, std::int64_t list, std::int64_t n_probes, std::int64_t n_candidates);
  void scan_list(std::int64_t list, std::int64_t n_candidates);
  void prune(std::size_t i, std::int64_t n_candidates);

  const RowSource& source_;
  const Partition& partition_;
  const CodedLists& coded_;
  const bool product_;

  // Buffers of the current scan.
  std::vector<float> rows_;                         // rows of the points or queries
  std::vector<float> centroids_, list_scores_;      // centroids of lists, and their scores with the rows
  std::vector<std::vector<std::int32_t>> probing_;  // for each list to probe, the rows that probe it
  std::vector<std::int32_t> probing_rows_;          // rows that probe the current list
  std::vector<float> residual_;                     // one row minus the centroid
  std::vector<std::int8_t> codes_;                  // codes of the rows that probe the current list
  std::vector<Code> row_codes_;
  std::vector<std::int32_t> products_;      // products of these codes with the codes of the list
  std::vector<float> scores_, thresholds_;  // scores of the candidates; threshold of each row
  std::vector<std::int32_t> slots_;
  std::vector<Reservoir> reservoirs_;
};

}  // namespace agglo
