#include "graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace agglo {
namespace {

constexpr std::int64_t kRows = 4096;  // rows in a chunk of parallel work

struct Edge {
  std::int32_t target;
  float weight;
};

}  // namespace

Graph united(std::int64_t n, std::span<const std::int32_t> sources, std::span<const std::int32_t> targets,
             std::span<const float> weights, Kind kind, Team& team) {
  const std::int64_t m = static_cast<std::int64_t>(targets.size());
  if (n < 0 || n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("a graph holds at most 2^30 points, got " + std::to_string(n));
  if (sources.empty() && m > 0 && (n == 0 || m % n != 0))
    throw std::invalid_argument("neighbour lists must be of equal length");
  const std::int64_t per_row = sources.empty() && n > 0 ? m / n : 0;
  const auto source = [&](std::int64_t e) {
    return sources.empty() ? static_cast<std::int32_t>(e / per_row) : sources[e];
  };

  // Both directions of every edge are counted, then laid into their rows.
  std::vector<std::int64_t> begin(static_cast<std::size_t>(n) + 1, 0);
  for (std::int64_t e = 0; e < m; ++e) {
    const std::int32_t i = source(e), j = targets[e];
    if (j == -1 && sources.empty()) continue;
    if (i < 0 || i >= n || j < 0 || j >= n)
      throw std::out_of_range("edge (" + std::to_string(i) + ", " + std::to_string(j) +
                              ") names a point outside 0.." + std::to_string(n - 1));
    if (!std::isfinite(weights[e]))
      throw std::invalid_argument("edge (" + std::to_string(i) + ", " + std::to_string(j) + ") has weight " +
                                  std::to_string(weights[e]) + "; weights must be finite");
    if (i == j) continue;
    ++begin[i + 1];
    ++begin[j + 1];
  }
  for (std::int64_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
  std::vector<Edge> edges(static_cast<std::size_t>(begin[n]));
  {
    std::vector<std::int64_t> place(begin.begin(), begin.end() - 1);
    for (std::int64_t e = 0; e < m; ++e) {
      const std::int32_t i = source(e), j = targets[e];
      if (j == -1 || i == j) continue;
      edges[place[i]++] = {j, weights[e]};
      edges[place[j]++] = {i, weights[e]};
    }
  }

  const bool similarity = kind == Kind::similarity;
  const auto order = [similarity](const Edge& a, const Edge& b) {
    if (a.target != b.target) return a.target < b.target;
    return similarity ? a.weight > b.weight : a.weight < b.weight;
  };
  Graph graph;
  graph.indptr.assign(static_cast<std::size_t>(n) + 1, 0);
  team.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) {
      const auto row = edges.begin() + begin[i], end = edges.begin() + begin[i + 1];
      std::sort(row, end, order);
      const auto same = [](const Edge& a, const Edge& b) { return a.target == b.target; };
      graph.indptr[i + 1] = std::unique(row, end, same) - row;
    }
  });
  for (std::int64_t i = 0; i < n; ++i) graph.indptr[i + 1] += graph.indptr[i];
  graph.indices.resize(static_cast<std::size_t>(graph.indptr[n]));
  graph.weights.resize(static_cast<std::size_t>(graph.indptr[n]));
  team.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) {
      const Edge* edge = edges.data() + begin[i];
      for (std::int64_t k = graph.indptr[i]; k < graph.indptr[i + 1]; ++k, ++edge) {
        graph.indices[k] = edge->target;
        graph.weights[k] = edge->weight;
      }
    }
  });
  return graph;
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
