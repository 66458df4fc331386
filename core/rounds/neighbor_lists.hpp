// Neighbour lists of clusters. A merge only links the lists of the merging clusters into a chain.
// The next search of the merged cluster combines these lists.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/memory.hpp"
#include "neighbors/graph.hpp"

namespace agglo {

// The neighbours of one cluster, and statistics of the edges to each neighbour. Both arrays share one memory
// block.
template <class Stat>
class NeighborList {
 public:
  NeighborList() = default;
  NeighborList(std::span<const Id> ids, const std::vector<Stat>& stats)
      : length_(static_cast<Id>(ids.size())) {
    block_.reset(static_cast<std::byte*>(std::malloc(ids.size() * (sizeof(Stat) + sizeof(Id)) + 1)));
    if (!block_) throw std::bad_alloc();
    if (ids.empty()) return;  // memcpy does not accept null pointers, even for 0 bytes
    std::memcpy(block_.get(), stats.data(), ids.size() * sizeof(Stat));
    std::memcpy(block_.get() + ids.size() * sizeof(Stat), ids.data(), ids.size() * sizeof(Id));
  }
  explicit operator bool() const { return block_ != nullptr; }
  std::int64_t size() const { return length_; }
  const Stat* stats() const { return reinterpret_cast<const Stat*>(block_.get()); }
  const Id* ids() const { return reinterpret_cast<const Id*>(block_.get() + length_ * sizeof(Stat)); }

 private:
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  std::unique_ptr<std::byte[], Free> block_;
  Id length_ = 0;
};

// A hash table that combines several neighbour lists into one list. It has one entry per neighbour.
// `ids` and `stats` contain the neighbours and their edge statistics in order of insertion.
template <class Linkage>
class NeighborTable {
 public:
  using Stat = typename Linkage::Stat;

  // Empties the table and reserves memory for the given number of entries.
  void reset(std::int64_t entries) {
    ids.clear();
    stats.clear();
    bits_ = std::max(4, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(entries))) + 1);
    const std::size_t slots = std::size_t{1} << bits_;
    if (table_.size() < slots) table_.resize(slots);
    std::fill_n(table_.begin(), slots, kNoCluster);
  }

  void add(Id id, Stat stat) {
    const std::size_t mask = (std::size_t{1} << bits_) - 1;
    std::size_t slot = (static_cast<std::uint32_t>(id) * 2654435769u) >> (32 - bits_);
    for (;; slot = (slot + 1) & mask) {
      const Id row = table_[slot];
      if (row == kNoCluster) {
        table_[slot] = static_cast<Id>(ids.size());
        ids.push_back(id);
        stats.push_back(stat);
        return;
      }
      if (ids[row] == id) return Linkage::combine(stats[row], stat);
    }
  }

  // Removes the neighbours for which keeps(id) is false. Do not call add() afterwards.
  template <class Keeps>
  void filter(const Keeps& keeps) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (!keeps(ids[k])) continue;
      ids[kept] = ids[k];
      stats[kept++] = stats[k];
    }
    ids.resize(kept);
    stats.resize(kept);
  }

  std::vector<Id> ids;
  std::vector<Stat> stats;
  std::vector<Id> pending;  // scratch memory of the caller, for the clusters that it must search

 private:
  std::vector<Id> table_;
  int bits_ = 0;
};

// The chains of neighbour lists of all clusters.
// A chain is a linked list of owners. An owner is a cluster, or a former cluster that has merged.
// Each owner has one neighbour list. The chain of cluster x starts at owner x.
// If an owner has no stored list, its neighbour list is its row of the graph.
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

  // Returns the total length of all lists of cluster x. A neighbour in m lists is counted m times.
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

  // Prefetches the chains of some clusters that follow clusters[k], because chains are scattered in memory.
  // Owners are prefetched 8 to 12 clusters ahead, lists 4 clusters ahead, and neighbours 2 clusters ahead.
  // To prefetch a neighbour, this function calls prefetch_neighbor(id).
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
  static constexpr std::size_t kPrefetch = 12;  // number of list entries to prefetch ahead

 private:
  struct Link {
    Id next = kNoCluster;
    Id last = kNoCluster;  // the last owner of the chain; valid for the first owner only
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
