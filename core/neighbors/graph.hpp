// The neighbour graph: an undirected weighted graph in compressed sparse rows (CSR).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

// The kind of edge weights. A larger similarity means closer. A smaller distance means closer.
enum class Kind { similarity, distance };

// A view of an undirected graph. Every function with a GraphView argument relies on these invariants:
//  1. indptr has n + 1 entries, starts at 0 and never decreases. indices and weights have indptr[n] entries.
//  2. The indices in a row are strictly increasing, within [0, n), and do not include the row itself.
//  3. If (i, j) is an edge, (j, i) is an edge with the same weight. All weights are finite.
struct GraphView {
  std::span<const std::int64_t> indptr;
  std::span<const std::int32_t> indices;
  std::span<const float> weights;

  std::int64_t size() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
};

struct Graph {
  Array<std::int64_t> indptr;
  Array<std::int32_t> indices;
  Array<float> weights;
};

// A view of directed edges in CSR form. The targets in a row may be in any order.
// Row i has the targets targets[indptr[i]] .. targets[indptr[i + 1] - 1]. A target of -1 means no edge.
struct DirectedView {
  std::span<const std::int64_t> indptr;
  std::span<const std::int32_t> targets;
  std::span<const float> weights;

  std::int64_t size() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
};

// Convert a list of edges (sources[e], targets[e], weights[e]) to CSR form, with one row per source.
Graph edges_to_csr(std::int64_t n, std::span<const std::int32_t> sources,
                   std::span<const std::int32_t> targets, std::span<const float> weights);

// Symmetrize directed edges, and return an undirected graph.
// The graph connects the points i and j if the edge (i, j) or the edge (j, i) exists.
//
// Self-loops are removed. If there are several edges between two points, only the closest edge is kept.
// Besides the rows and the result, the function needs one bit of memory per edge.
Graph symmetrize(const DirectedView& rows, Kind kind, ThreadPool& pool);

// Return a quantile of the weights on one side of a bound.
// If `up` is true, the weights above the bound are selected. Otherwise, the weights below it are selected.
// The selected weights are ranked by their distance from the bound, from rank 0 to rank count - 1.
// The result is the weight with rank floor(share * (count - 1)). If no weight is selected, it is NaN.
// The function does not copy the weights.
float weight_quantile(std::span<const float> weights, double bound, bool up, double share);

// Return a description of the first violated invariant of GraphView.
// If the graph violates no invariant, return an empty string.
std::string find_graph_violation(const GraphView& graph, ThreadPool& pool);

}  // namespace agglo
