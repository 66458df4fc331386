#include "neighbors/graph.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "base/memory.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows = 4096;  // rows per chunk of parallel work
constexpr std::int64_t kAhead = 4;    // number of rows to prefetch ahead
constexpr std::int32_t kGap = -1;     // marks a removed edge

// Packs an edge into one integer. Sorting these integers sorts the edges by target.
std::uint64_t pack_edge(std::int32_t target, float weight) {
  return std::uint64_t{static_cast<std::uint32_t>(target)} << 32 | std::bit_cast<std::uint32_t>(weight);
}
std::int32_t target_of(std::uint64_t edge) { return static_cast<std::int32_t>(edge >> 32); }
float weight_of(std::uint64_t edge) { return std::bit_cast<float>(static_cast<std::uint32_t>(edge)); }

void check(const DirectedView& rows) {
  const std::int64_t n = rows.size();
  if (n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("a graph holds at most 2^30 points, got " + std::to_string(n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) {
      const std::int32_t j = rows.targets[k];
      if (j < -1 || j >= n)
        throw std::out_of_range("edge (" + std::to_string(i) + ", " + std::to_string(j) +
                                ") names a point outside 0.." + std::to_string(n - 1));
      if (j != -1 && !std::isfinite(rows.weights[k]))
        throw std::invalid_argument("edge (" + std::to_string(i) + ", " + std::to_string(j) +
                                    ") has weight " + std::to_string(rows.weights[k]) +
                                    "; weights must be finite");
    }
}

// Calls prefetch(target) for each target of row i + ahead.
template <class Prefetch>
void prefetch_targets(const DirectedView& rows, std::int64_t i, std::int64_t ahead,
                      const Prefetch& prefetch) {
  if (i + ahead >= rows.size()) return;
  for (std::int64_t k = rows.indptr[i + ahead]; k < rows.indptr[i + ahead + 1]; ++k)
    if (rows.targets[k] != -1) prefetch(rows.targets[k]);
}

// Returns one bit per edge (i, j). The bit is 1 if the reverse edge (j, i) exists with the same weight.
std::vector<std::uint64_t> mutual(const DirectedView& rows, ThreadPool& pool) {
  std::vector<std::uint64_t> bits(rows.targets.size() / 64 + 1, 0);
  pool.ranges(rows.size(), kRows, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) {
      prefetch_targets(rows, i, 2 * kAhead, [&](std::int32_t j) { prefetch(&rows.indptr[j]); });
      prefetch_targets(rows, i, kAhead, [&](std::int32_t j) {
        const std::int64_t start = rows.indptr[j], length = rows.indptr[j + 1] - start;
        prefetch(rows.targets.data() + start, length);
        prefetch(rows.weights.data() + start, length);
      });
      for (std::int64_t k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) {
        const std::int32_t j = rows.targets[k];
        if (j == -1) continue;
        bool back = false;
        for (std::int64_t l = rows.indptr[j]; l < rows.indptr[j + 1]; ++l)
          back |= rows.targets[l] == i && rows.weights[l] == rows.weights[k];
        if (back)
          std::atomic_ref(bits[k / 64]).fetch_or(std::uint64_t{1} << k % 64, std::memory_order_relaxed);
      }
    }
  });
  return bits;
}

}  // namespace

Graph edges_to_csr(std::int64_t n, std::span<const std::int32_t> sources,
                   std::span<const std::int32_t> targets, std::span<const float> weights) {
  Graph rows;
  rows.indptr.assign(static_cast<std::size_t>(n) + 1, 0);
  for (const std::int32_t i : sources) {
    if (i < 0 || i >= n)
      throw std::out_of_range("an edge starts at point " + std::to_string(i) + ", outside 0.." +
                              std::to_string(n - 1));
    ++rows.indptr[i + 1];
  }
  std::partial_sum(rows.indptr.begin(), rows.indptr.end(), rows.indptr.begin());
  rows.indices.resize(sources.size());
  rows.weights.resize(sources.size());
  std::vector<std::int64_t> next(rows.indptr.begin(), rows.indptr.end() - 1);
  for (std::size_t e = 0; e < sources.size(); ++e) {
    const std::int64_t at = next[sources[e]]++;
    rows.indices[at] = targets[e];
    rows.weights[at] = weights[e];
  }
  return rows;
}

Graph symmetrize(const DirectedView& rows, Kind kind, ThreadPool& pool) {
  check(rows);
  const std::int64_t n = rows.size();
  const bool is_similarity = kind == Kind::similarity;
  const std::vector<std::uint64_t> both = mutual(rows, pool);
  // Calls call(i, j, weight) for every edge (i, j).
  // If the reverse edge does not exist with the same weight, also calls call(j, i, weight).
  // Several threads make these calls, in any order.
  // Because call(j, ...) writes to counters[j], each_edge prefetches counters[j].
  const auto each_edge = [&](const std::int64_t* counters, const auto& call) {
    pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t i = first; i < last; ++i) {
        prefetch_targets(rows, i, kAhead, [&](std::int32_t j) { prefetch(counters + j); });
        for (std::int64_t k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) {
          const std::int32_t j = rows.targets[k];
          if (j == -1 || j == i) continue;
          call(i, j, rows.weights[k]);
          if (!(both[k / 64] >> k % 64 & 1)) call(j, static_cast<std::int32_t>(i), rows.weights[k]);
        }
      }
    });
  };

  Graph graph;
  graph.indptr.assign(static_cast<std::size_t>(n) + 1, 0);
  each_edge(graph.indptr.data() + 1, [&](std::int64_t i, std::int32_t, float) {
    std::atomic_ref(graph.indptr[i + 1]).fetch_add(1, std::memory_order_relaxed);
  });
  std::partial_sum(graph.indptr.begin(), graph.indptr.end(), graph.indptr.begin());
  graph.indices.resize(static_cast<std::size_t>(graph.indptr[n]));
  graph.weights.resize(static_cast<std::size_t>(graph.indptr[n]));
  each_edge(graph.indptr.data(), [&](std::int64_t i, std::int32_t j, float weight) {
    const std::int64_t at = std::atomic_ref(graph.indptr[i]).fetch_add(1, std::memory_order_relaxed);
    graph.indices[at] = j;
    graph.weights[at] = weight;
  });
  // indptr[i] is now the end of row i. The end of row i is the start of row i + 1.
  std::copy_backward(graph.indptr.begin(), graph.indptr.end() - 1, graph.indptr.end());
  graph.indptr[0] = 0;

  // Sort each row by target. If a row has several edges to the same target, keep only the closest edge.
  const auto closer = [&](float a, float b) { return is_similarity ? std::max(a, b) : std::min(a, b); };
  pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    std::vector<std::uint64_t> own;
    for (std::int64_t i = first; i < last; ++i) {
      own.clear();
      for (std::int64_t k = graph.indptr[i]; k < graph.indptr[i + 1]; ++k)
        own.push_back(pack_edge(graph.indices[k], graph.weights[k]));
      std::sort(own.begin(), own.end());
      std::int64_t at = graph.indptr[i];
      for (std::size_t e = 0; e < own.size();) {
        const std::int32_t j = target_of(own[e]);
        float weight = weight_of(own[e]);
        for (++e; e < own.size() && target_of(own[e]) == j; ++e) weight = closer(weight, weight_of(own[e]));
        graph.indices[at] = j;
        graph.weights[at++] = weight;
      }
      std::fill(graph.indices.begin() + at, graph.indices.begin() + graph.indptr[i + 1], kGap);
    }
  });

  // Close the gaps that removed edges left.
  std::int64_t at = 0;
  for (std::int64_t i = 0, begin = 0; i < n; ++i) {
    const std::int64_t end = graph.indptr[i + 1];
    std::int64_t size = end - begin;
    while (size > 0 && graph.indices[begin + size - 1] == kGap) --size;
    if (at != begin) {
      std::copy_n(graph.indices.begin() + begin, size, graph.indices.begin() + at);
      std::copy_n(graph.weights.begin() + begin, size, graph.weights.begin() + at);
    }
    begin = end;
    at += size;
    graph.indptr[i + 1] = at;
  }
  graph.indices.resize(static_cast<std::size_t>(at));
  graph.weights.resize(static_cast<std::size_t>(at));
  return graph;
}

float weight_quantile(std::span<const float> weights, double bound, bool up, double share) {
  // The quantile is found with two histograms, without sorting.
  // Each weight has an integer key, which increases with the distance of the weight from the bound.
  // The first histogram finds the upper 16 bits of the key with the wanted rank.
  // The second histogram finds the lower 16 bits of this key.
  const auto key = [up](float weight) {
    const auto bits = std::bit_cast<std::uint32_t>(weight);
    const std::uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
    return up ? ascending : ~ascending;
  };
  const auto counts = [&](float weight) { return up ? weight > bound : weight < bound; };
  std::vector<std::int64_t> upper(1 << 16, 0), lower(1 << 16, 0);
  std::int64_t number = 0;
  for (const float weight : weights)
    if (counts(weight)) ++number, ++upper[key(weight) >> 16];
  if (number == 0) return std::numeric_limits<float>::quiet_NaN();
  auto rank = static_cast<std::int64_t>(share * static_cast<double>(number - 1));
  const auto find_rank = [&rank](const std::vector<std::int64_t>& histogram) {
    std::uint32_t half = 0;
    while (rank >= histogram[half]) rank -= histogram[half++];
    return half;
  };
  const std::uint32_t first = find_rank(upper);
  for (const float weight : weights)
    if (counts(weight) && key(weight) >> 16 == first) ++lower[key(weight) & 0xffff];
  const std::uint32_t found = first << 16 | find_rank(lower);
  const std::uint32_t ascending = up ? found : ~found;
  return std::bit_cast<float>(ascending >> 31 ? ascending & 0x7fffffffu : ~ascending);
}

std::string find_graph_violation(const GraphView& graph, ThreadPool& pool) {
  const std::int64_t n = graph.size();
  if (n < 0 || graph.indptr[0] != 0) return "indptr must start at 0";
  for (std::int64_t i = 0; i < n; ++i)
    if (graph.indptr[i + 1] < graph.indptr[i]) return "indptr decreases at row " + std::to_string(i);
  const std::size_t nnz = static_cast<std::size_t>(graph.indptr[n]);
  if (graph.indices.size() != nnz || graph.weights.size() != nnz)
    return "indptr ends at " + std::to_string(nnz) + " but there are " +
           std::to_string(graph.indices.size()) + " indices and " + std::to_string(graph.weights.size()) +
           " weights";

  const std::int64_t chunks = (n + kRows - 1) / kRows;
  std::vector<std::string> found(static_cast<std::size_t>(chunks));
  const auto edge = [](std::int64_t i, std::int64_t j) {
    return "(" + std::to_string(i) + ", " + std::to_string(j) + ")";
  };
  const auto check = [&](std::int64_t i, std::int64_t k) -> std::string {
    const std::int32_t j = graph.indices[k];
    if (j < 0 || j >= n) return "edge " + edge(i, j) + " names a point outside 0.." + std::to_string(n - 1);
    if (j == i) return "point " + std::to_string(i) + " has an edge to itself";
    if (k > graph.indptr[i] && graph.indices[k - 1] >= j)
      return "the indices of row " + std::to_string(i) + " are not strictly increasing";
    if (!std::isfinite(graph.weights[k]))
      return "edge " + edge(i, j) + " has weight " + std::to_string(graph.weights[k]);
    const auto row = graph.indices.subspan(graph.indptr[j], graph.indptr[j + 1] - graph.indptr[j]);
    const auto back = std::lower_bound(row.begin(), row.end(), static_cast<std::int32_t>(i));
    if (back == row.end() || *back != i)
      return "edge " + edge(i, j) + " has no edge " + edge(j, i) + " to match";
    if (graph.weights[graph.indptr[j] + (back - row.begin())] != graph.weights[k])
      return "edges " + edge(i, j) + " and " + edge(j, i) + " differ in weight";
    return {};
  };
  pool.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    std::string& message = found[first / kRows];
    for (std::int64_t i = first; i < last && message.empty(); ++i)
      for (std::int64_t k = graph.indptr[i]; k < graph.indptr[i + 1] && message.empty(); ++k)
        message = check(i, k);
  });
  for (const auto& message : found)
    if (!message.empty()) return message;
  return {};
}

}  // namespace agglo
