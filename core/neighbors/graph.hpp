// The neighbour graph: an undirected weighted graph in compressed rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

enum class Kind { similarity, distance };  // larger is closer, smaller is closer

// A graph that somebody else owns. Invariants, which everything that takes one relies on:
//  1. indptr has n + 1 entries, starts at 0 and never decreases; indices and weights have indptr[n] entries;
//  2. every row's indices are strictly increasing, within [0, n), and without the row's own index;
//  3. (i, j) is there exactly if (j, i) is, with the same weight; weights are finite.
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

// Directed edges, row by row, in no order: row i has targets[indptr[i]..indptr[i+1]] and their weights. A
// target of -1 is no edge.
struct DirectedView {
  std::span<const std::int64_t> indptr;
  std::span<const std::int32_t> targets;
  std::span<const float> weights;

  std::int64_t size() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
};

// Edges (sources[e], targets[e], weights[e]) brought into rows.
Graph edges_to_csr(std::int64_t n, std::span<const std::int32_t> sources,
                   std::span<const std::int32_t> targets, std::span<const float> weights);

// The undirected union of directed edges: self-loops are dropped, and of several edges between two points the
// closest stays. What it returns has the invariants of GraphView. Memory beside rows and result: a bit an
// edge.
Graph symmetrize(const DirectedView& rows, Kind kind, ThreadPool& pool);

// Of the weights beyond a bound, above it if `up` and below it otherwise, the one that a `share` of them do
// not lie beyond: that at floor(share * (number - 1)) in order from the bound. NaN if there is none. It is
// found without a copy of the weights.
float quantile_beyond(std::span<const float> weights, double bound, bool up, double share);

// The first violation of the invariants of GraphView, in words; empty if there is none.
std::string violation(const GraphView& graph, ThreadPool& pool);

}  // namespace agglo
