#include "neighbors/candidates.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "neighbors/lists.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows = 64;  // rows per chunk of parallel work

using Edge = std::pair<float, std::int32_t>;  // (weight, target), where a smaller weight is closer

// Keeps only the closest edge to each target, and sorts the edges by weight. Ties are sorted by target.
void sort_unique(std::vector<Edge>& row) {
  std::sort(row.begin(), row.end(), [](const Edge& a, const Edge& b) {
    return a.second != b.second ? a.second < b.second : a.first < b.first;
  });
  const auto same = [](const Edge& a, const Edge& b) { return a.second == b.second; };
  row.erase(std::unique(row.begin(), row.end(), same), row.end());
  std::sort(row.begin(), row.end());
}

}  // namespace

Neighbors select_nearest(const DirectedView& rows, std::int64_t k, Kind kind,
                         const PairSimilarity& similarity, ThreadPool& pool) {
  const std::int64_t n = rows.size();
  const float sign = kind == Kind::similarity ? -1.0f : 1.0f;
  Neighbors result{std::vector<std::int32_t>(n * k, -1), std::vector<float>(n * k, 0.0f)};
  pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    std::vector<Edge> row;
    std::vector<Candidate> tied;
    for (std::int64_t i = first; i < last; ++i) {
      row.clear();
      for (std::int64_t e = rows.indptr[i]; e < rows.indptr[i + 1]; ++e)
        if (rows.targets[e] >= 0 && rows.targets[e] != i)
          row.push_back({sign * rows.weights[e], rows.targets[e]});
      sort_unique(row);
      if (static_cast<std::int64_t>(row.size()) > k && row[k - 1].first == row[k].first) {
        const auto [begin, end] = std::equal_range(
            row.begin(), row.end(), row[k], [](const Edge& a, const Edge& b) { return a.first < b.first; });
        tied.clear();
        for (auto edge = begin; edge != end; ++edge)
          tied.push_back({similarity(static_cast<std::int32_t>(i), edge->second), edge->second});
        std::sort(tied.begin(), tied.end());
        for (std::size_t s = 0; s < tied.size(); ++s) begin[s].second = tied[s].index;
      }
      const std::int64_t found = std::min(k, static_cast<std::int64_t>(row.size()));
      for (std::int64_t s = 0; s < found; ++s) {
        result.indices[i * k + s] = row[s].second;
        result.values[i * k + s] = sign * row[s].first;
      }
    }
  });
  return result;
}

}  // namespace agglo
