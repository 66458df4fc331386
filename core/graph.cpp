#include "graph.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace agglo {
namespace {

constexpr std::int64_t kRows = 4096;  // rows in a chunk of parallel work

// An edge as one number that sorts by target.
std::uint64_t packed(std::int32_t target, float weight) {
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

// Every edge turned round. Row j then has its sources in increasing order.
Graph transposed(const DirectedView& rows, Team& team) {
  const std::int64_t n = rows.size();
  Graph back;
  back.indptr.assign(static_cast<std::size_t>(n) + 1, 0);
  for (const std::int32_t j : rows.targets)
    if (j != -1) ++back.indptr[j + 1];
  std::partial_sum(back.indptr.begin(), back.indptr.end(), back.indptr.begin());
  back.indices.resize(static_cast<std::size_t>(back.indptr[n]));
  back.weights.resize(static_cast<std::size_t>(back.indptr[n]));
  // Each thread reads all edges and writes those into its own range of rows: no two write to one place, and
  // the order inside a row does not depend on how many there are.
  std::vector<std::int64_t> place(back.indptr.begin(), back.indptr.end() - 1);
  team.run(team.size(), [&](std::int64_t part, int) {
    const std::int64_t first = n * part / team.size(), last = n * (part + 1) / team.size();
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) {
        const std::int32_t j = rows.targets[k];
        if (j < first || j >= last) continue;
        const std::int64_t at = place[j]++;
        back.indices[at] = static_cast<std::int32_t>(i);
        back.weights[at] = rows.weights[k];
      }
  });
  return back;
}

}  // namespace

Graph grouped(std::int64_t n, std::span<const std::int32_t> sources, std::span<const std::int32_t> targets,
              std::span<const float> weights) {
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
  std::vector<std::int64_t> place(rows.indptr.begin(), rows.indptr.end() - 1);
  for (std::size_t e = 0; e < sources.size(); ++e) {
    const std::int64_t at = place[sources[e]]++;
    rows.indices[at] = targets[e];
    rows.weights[at] = weights[e];
  }
  return rows;
}

Graph united(const DirectedView& rows, Kind kind, Team& team) {
  check(rows);
  const std::int64_t n = rows.size();
  const Graph back = transposed(rows, team);
  const bool similarity = kind == Kind::similarity;

  // Row i of the union: its own edges, sorted, merged with those that come back. Done twice, to count and to
  // write: that costs less than the memory to remember it.
  const auto each_row = [&](const auto& begin_row) {
    team.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
      std::vector<std::uint64_t> own;
      for (std::int64_t i = first; i < last; ++i) {
        own.clear();
        for (std::int64_t k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k)
          if (rows.targets[k] != -1) own.push_back(packed(rows.targets[k], rows.weights[k]));
        std::sort(own.begin(), own.end());
        auto emit = begin_row(i);
        std::int32_t target = -1;
        float weight = 0;
        const auto add = [&](std::int32_t j, float w) {
          if (j == target) {
            weight = similarity ? std::max(weight, w) : std::min(weight, w);
            return;
          }
          if (target != -1) emit(target, weight);
          target = j, weight = w;
        };
        std::int64_t k = back.indptr[i];
        const std::int64_t end = back.indptr[i + 1];
        for (const std::uint64_t edge : own) {
          for (; k < end && back.indices[k] < target_of(edge); ++k)
            if (back.indices[k] != i) add(back.indices[k], back.weights[k]);
          if (target_of(edge) != i) add(target_of(edge), weight_of(edge));
        }
        for (; k < end; ++k)
          if (back.indices[k] != i) add(back.indices[k], back.weights[k]);
        if (target != -1) emit(target, weight);
      }
    });
  };

  Graph graph;
  graph.indptr.assign(static_cast<std::size_t>(n) + 1, 0);
  each_row([&](std::int64_t i) { return [count = &graph.indptr[i + 1]](std::int32_t, float) { ++*count; }; });
  std::partial_sum(graph.indptr.begin(), graph.indptr.end(), graph.indptr.begin());
  graph.indices.resize(static_cast<std::size_t>(graph.indptr[n]));
  graph.weights.resize(static_cast<std::size_t>(graph.indptr[n]));
  each_row([&](std::int64_t i) {
    return [&graph, k = graph.indptr[i]](std::int32_t target, float weight) mutable {
      graph.indices[k] = target;
      graph.weights[k++] = weight;
    };
  });
  return graph;
}

float beyond(std::span<const float> weights, double bound, bool up, double share) {
  // Keys are in the order of the weights, from the bound: their upper half is found first, then the lower.
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
  const auto place = [&rank](const std::vector<std::int64_t>& histogram) {
    std::uint32_t half = 0;
    while (rank >= histogram[half]) rank -= histogram[half++];
    return half;
  };
  const std::uint32_t first = place(upper);
  for (const float weight : weights)
    if (counts(weight) && key(weight) >> 16 == first) ++lower[key(weight) & 0xffff];
  const std::uint32_t found = first << 16 | place(lower);
  const std::uint32_t ascending = up ? found : ~found;
  return std::bit_cast<float>(ascending >> 31 ? ascending & 0x7fffffffu : ~ascending);
}

std::string violation(const GraphView& graph, Team& team) {
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
  team.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
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
