// The neighbour graph: an undirected weighted graph in compressed sparse rows (CSR).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

// The kind of edge weights. Larger similarities are closer, and smaller distances are closer.
enum class Kind { similarity, distance };

// A view of an undirected graph. Every function with a GraphView argument relies on these invariants:
//  1. indptr has n + 1 entries, starts at 0 and never decreases; indices and weights have indptr[n] entries;
//  2. the indices in a row are strictly increasing, within [0, n), and do not include the row itself;
//  3. if (i, j) is an edge, (j, i) is an edge with the same weight; all weights are finite.
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

// Convert the edges (sources[e], targets[e], weights[e]) to CSR, with one row per source.
Graph edges_to_csr(std::int64_t n, std::span<const std::int32_t> sources,
                   std::span<const std::int32_t> targets, std::span<const float> weights);

// Symmetrize directed edges: return the undirected graph with all edges in either direction.
//
// Self-loops are dropped. Of several edges between two points, only the closest edge is kept.
// Memory besides rows and result: one bit per edge.
Graph symmetrize(const DirectedView& rows, Kind kind, ThreadPool& pool);

// Return a quantile of the weights above a bound if `up`, or below the bound otherwise.
// The `count` selected weights are ranked by their distance from the bound.
// The result is the weight with rank floor(share * (count - 1)), or NaN if count is 0.
// The weights are not copied.
float weight_quantile(std::span<const float> weights, double bound, bool up, double share);

// Return a description of the first violated invariant of GraphView, or an empty string.
std::string find_graph_violation(const GraphView& graph, ThreadPool& pool);

}  // namespace agglo
