// The neighbour graph: an undirected weighted graph in compressed rows (CSR).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"

namespace agglo {

// Whether larger or smaller weights are closer.
enum class Kind { similarity, distance };

// A view of a graph. Invariants, on which every function with such an argument relies:
//  1. indptr has n + 1 entries, starts at 0 and never decreases; indices and weights have indptr[n] entries;
//  2. the indices of a row are strictly increasing, within [0, n), and without the index of the row;
//  3. if (i, j) is an edge, so is (j, i), with the same weight; weights are finite.
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

// A view of directed edges in rows, in any order: row i has targets[indptr[i]] .. targets[indptr[i + 1] - 1]
// and their weights. A target of -1 means no edge.
struct DirectedView {
  std::span<const std::int64_t> indptr;
  std::span<const std::int32_t> targets;
  std::span<const float> weights;

  std::int64_t size() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
};

// Sort edges (sources[e], targets[e], weights[e]) into rows by their sources.
Graph edges_to_csr(std::int64_t n, std::span<const std::int32_t> sources,
                   std::span<const std::int32_t> targets, std::span<const float> weights);

// Symmetrize directed edges: return the undirected graph of all edges in either direction.
//
// Self-loops are dropped. Of several edges between two points the closest is kept. Memory besides rows and
// result: one bit per edge.
Graph symmetrize(const DirectedView& rows, Kind kind, ThreadPool& pool);

// Return a quantile of the weights beyond a bound: above it if `up`, below it otherwise. It is the weight at
// floor(share * (count - 1)) in the order from the bound, or NaN if there is none. The weights are not
// copied.
float quantile_beyond(std::span<const float> weights, double bound, bool up, double share);

// Describe the first violation of the invariants of GraphView; empty if there is none.
std::string violation(const GraphView& graph, ThreadPool& pool);

}  // namespace agglo
