// The lists of a cluster's points, one after the other until a look makes one of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/memory.hpp"
#include "neighbors/graph.hpp"
#include "rounds/adjacency.hpp"

namespace agglo {

// A point without a list has its row of the graph.
template <class Stat>
class Chains {
 public:
  explicit Chains(const GraphView& graph) : graph_(graph), links_(graph.size()) {
    for (Id i = 0; i < graph.size(); ++i) links_[i].last = i;
  }

  const List<Stat>& list(Id owner) const { return links_[owner].list; }
  Id next(Id owner) const { return links_[owner].next; }  // a cluster is its first owner
  bool bare(Id x) const { return next(x) == kNobody && !list(x); }

  // The neighbours that an owner knows.
  std::span<const Id> names(Id owner) const {
    if (const auto& own = list(owner)) return {own.ids(), static_cast<std::size_t>(own.size())};
    return graph_.indices.subspan(graph_.indptr[owner], graph_.indptr[owner + 1] - graph_.indptr[owner]);
  }

  // How many all owners of a cluster know together, with those that several know.
  std::int64_t entries(Id x) const {
    std::size_t count = 0;
    for (Id owner = x; owner != kNobody; owner = next(owner)) count += names(owner).size();
    return static_cast<std::int64_t>(count);
  }

  void append(Id cluster, Id x) {
    links_[links_[cluster].last].next = x;
    links_[cluster].last = links_[x].last;
  }

  // Puts one list in the place of all those of x.
  void replace(Id x, List<Stat> list) {
    for (Id owner = x; owner != kNobody;) {
      links_[owner].list = {};
      owner = std::exchange(links_[owner].next, kNobody);
    }
    links_[x].last = x;
    links_[x].list = std::move(list);
  }

  // Asks, step by step, for what looks at clusters[k] and those after it will read: owners, lists, and by
  // `ask` for what is known of the first neighbours. All of it lies scattered in memory.
  template <class Ask>
  void ask_ahead(std::span<const Id> clusters, std::size_t k, const Ask& ask) const {
    const auto ahead = [&](std::size_t by) { return clusters[std::min(k + by, clusters.size() - 1)]; };
    ask_for_owner(ahead(12));
    ask_for_owner(next(ahead(8)));
    for (const Id owner : {ahead(4), next(ahead(4))}) ask_for_list(owner);
    for (const Id owner : {ahead(2), next(ahead(2))})
      if (owner != kNobody)
        for (const Id name : names(owner).first(std::min(names(owner).size(), kNames))) ask(name);
  }
  static constexpr std::size_t kNames = 12;  // neighbours that are asked for ahead of the reading

 private:
  struct Link {
    Id next = kNobody;
    Id last = kNobody;  // at the cluster's first owner
    List<Stat> list;
  };

  void ask_for_owner(Id owner) const {
    if (owner == kNobody) return;
    prefetch(&links_[owner]);
    prefetch(&graph_.indptr[owner]);
  }

  void ask_for_list(Id owner) const {
    if (owner == kNobody) return;
    prefetch(names(owner).data(), names(owner).size());
    if (const auto& own = list(owner))
      prefetch(own.stats(), own.size());
    else
      prefetch(graph_.weights.data() + graph_.indptr[owner], names(owner).size());
  }

  const GraphView graph_;
  Array<Link> links_;
};

}  // namespace agglo
