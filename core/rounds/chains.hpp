// Chains of neighbour lists. A merge chains the lists of the parts, and the next search combines them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/memory.hpp"
#include "neighbors/graph.hpp"
#include "rounds/adjacency.hpp"

namespace agglo {

// The chains of neighbour lists of all clusters.
// A chain is a linked list of owners. The chain of cluster x starts at owner x.
// Each owner has one neighbour list. If it has not been stored, it is the owner's row of the graph.
template <class Stat>
class ListChains {
 public:
  explicit ListChains(const GraphView& graph) : graph_(graph), links_(graph.size()) {
    for (Id i = 0; i < graph.size(); ++i) links_[i].last = i;
  }

  const NeighborList<Stat>& list(Id owner) const { return links_[owner].list; }
  Id next(Id owner) const { return links_[owner].next; }
  bool is_graph_row(Id x) const { return next(x) == kNoCluster && !list(x); }

  // Returns the neighbours in the list of one owner.
  std::span<const Id> ids(Id owner) const {
    if (const auto& own = list(owner)) return {own.ids(), static_cast<std::size_t>(own.size())};
    return graph_.indices.subspan(graph_.indptr[owner], graph_.indptr[owner + 1] - graph_.indptr[owner]);
  }

  // Returns the total length of all lists of cluster x. A neighbour in several lists counts several times.
  std::int64_t count_entries(Id x) const {
    std::size_t count = 0;
    for (Id owner = x; owner != kNoCluster; owner = next(owner)) count += ids(owner).size();
    return static_cast<std::int64_t>(count);
  }

  // Appends the chain of x to the chain of `cluster`.
  void append(Id cluster, Id x) {
    links_[links_[cluster].last].next = x;
    links_[cluster].last = links_[x].last;
  }

  // Replaces the whole chain of x by one list.
  void replace(Id x, NeighborList<Stat> list) {
    for (Id owner = x; owner != kNoCluster;) {
      links_[owner].list = {};
      owner = std::exchange(links_[owner].next, kNoCluster);
    }
    links_[x].last = x;
    links_[x].list = std::move(list);
  }

  // Prefetches the chains of the clusters that follow clusters[k], because they are scattered in memory.
  // The stages are: owners 8 to 12 clusters ahead, lists 4 ahead, and neighbours 2 ahead.
  // Neighbours are prefetched by prefetch_neighbor(id).
  template <class PrefetchNeighbor>
  void prefetch_ahead(std::span<const Id> clusters, std::size_t k,
                      const PrefetchNeighbor& prefetch_neighbor) const {
    const auto ahead = [&](std::size_t by) { return clusters[std::min(k + by, clusters.size() - 1)]; };
    prefetch_owner(ahead(12));
    prefetch_owner(next(ahead(8)));
    for (const Id owner : {ahead(4), next(ahead(4))}) prefetch_list(owner);
    for (const Id owner : {ahead(2), next(ahead(2))})
      if (owner != kNoCluster)
        for (const Id id : ids(owner).first(std::min(ids(owner).size(), kPrefetch))) prefetch_neighbor(id);
  }
  static constexpr std::size_t kPrefetch = 12;  // number of neighbours that are prefetched before their use

 private:
  struct Link {
    Id next = kNoCluster;
    Id last = kNoCluster;  // last owner of the chain; valid for its first owner only
    NeighborList<Stat> list;
  };

  void prefetch_owner(Id owner) const {
    if (owner == kNoCluster) return;
    prefetch(&links_[owner]);
    prefetch(&graph_.indptr[owner]);
  }

  void prefetch_list(Id owner) const {
    if (owner == kNoCluster) return;
    prefetch(ids(owner).data(), ids(owner).size());
    if (const auto& own = list(owner))
      prefetch(own.stats(), own.size());
    else
      prefetch(graph_.weights.data() + graph_.indptr[owner], ids(owner).size());
  }

  const GraphView graph_;
  Array<Link> links_;
};

}  // namespace agglo
