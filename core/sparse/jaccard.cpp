#include "sparse/jaccard.hpp"

#include <span>
#include <utility>
#include <vector>

#include "sparse/overlaps.hpp"

namespace agglo {

Neighbors jaccard_neighbors(const Sets& sets, std::int64_t k, ThreadPool& pool, const Report& report) {
  const Overlaps overlaps(sets, find_duplicates(sets, pool));
  InvertedSearch<Overlaps> search(overlaps, k, pool.size());
  return all_lists(
      overlaps, overlaps.ids, k, [&](std::int64_t p, int worker) { return search.search_row(p, worker); },
      distance_of, pool, report);
}

Neighbors jaccard_query(const Sets& sets, std::int64_t base, std::int64_t k, ThreadPool& pool,
                        const Report& report) {
  const Overlaps overlaps(sets, find_duplicates(sets.first(base), pool));
  InvertedSearch<Overlaps> search(overlaps, k, pool.size());
  // An empty set has no members, so the inverted index finds no neighbours for it.
  // The only neighbours of an empty set are other empty sets.
  std::vector<Candidate> empty;
  if (sets.size(overlaps.ids[0]) == 0) empty.push_back({0, overlaps.ids[0]});
  return query_lists(
      overlaps, base, sets.n(), k,
      [&](std::int32_t row, int worker) -> std::span<const Candidate> {
        if (sets.size(row) == 0) return empty;
        return search.search_query(row, worker);
      },
      distance_of, pool, report);
}

std::vector<float> pairwise_jaccard(const Sets& sets, ThreadPool& pool, const Report& report) {
  const Overlaps overlaps(sets, find_duplicates(sets, pool));
  const std::int32_t n = static_cast<std::int32_t>(sets.n());
  std::vector<Overlaps::Query> queries(pool.size(), Overlaps::Query(overlaps));
  std::vector<float> values(static_cast<std::int64_t>(n) * (n - 1));
  pool.run(
      n,
      [&](std::int64_t i, int worker) {
        overlaps.scatter(static_cast<std::int32_t>(i), queries[worker]);
        float* out = values.data() + i * (n - 1);
        for (std::int32_t j = 0; j < n; ++j)
          if (j != i) *out++ = distance_of(overlaps.similarity(queries[worker], j));
      },
      report);
  return values;
}

PairSimilarity jaccard_similarity(const Sets& sets) {
  return [sets](std::int32_t i, std::int32_t j) {
    const auto left = sets.row(i), right = sets.row(j);
    std::int64_t common = 0;
    for (std::size_t e = 0, f = 0; e < left.size() && f < right.size();) {
      common += left[e] == right[f];
      const bool next_left = left[e] <= right[f], next_right = right[f] <= left[e];
      e += next_left;
      f += next_right;
    }
    return jaccard_of_counts(sets.size(i), sets.size(j), common);
  };
}

}  // namespace agglo
