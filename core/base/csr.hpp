// Lists of ids in compressed sparse rows (CSR), and the counting sort that builds them.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace agglo {

// Row r holds the ids indices[indptr[r]] .. indices[indptr[r + 1] - 1].
struct Csr {
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> indices;

  std::int64_t size() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
  std::int64_t row_size(std::int64_t r) const { return indptr[r + 1] - indptr[r]; }
  std::span<const std::int32_t> row(std::int64_t r) const {
    return std::span(indices).subspan(indptr[r], row_size(r));
  }
};

// Group the ids 0 .. labels.size() - 1 by their labels. Each label is in [0, n_labels).
// Row r of the result holds the ids with label r, in increasing order.
// The function is a counting sort, so it takes linear time.
template <class Label>
Csr group_by_label(std::span<const Label> labels, std::int64_t n_labels) {
  Csr rows{std::vector<std::int64_t>(n_labels + 1, 0), std::vector<std::int32_t>(labels.size())};
  for (const Label label : labels) ++rows.indptr[label + 1];
  std::partial_sum(rows.indptr.begin(), rows.indptr.end(), rows.indptr.begin());
  std::vector<std::int64_t> next(rows.indptr.begin(), rows.indptr.end() - 1);
  for (std::size_t i = 0; i < labels.size(); ++i)
    rows.indices[next[labels[i]]++] = static_cast<std::int32_t>(i);
  return rows;
}

}  // namespace agglo
