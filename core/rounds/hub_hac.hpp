// HAC on graphs with hubs: clusters with so many neighbours that reading all of them at every merge is slow.
//
// The edges between two clusters are combined at once, and kept in the lists of both. When two clusters
// merge, the edges of the one with fewer neighbours are moved to the other one (small-to-large merging), so
// that an edge is moved O(log n) times. A hub keeps its neighbours sorted by linkage.
//
// Nearest neighbours are exact at the start of every round. So a cluster has to be looked at again if
//  1. it has merged, or its edges to a neighbour have changed;
//  2. its nearest neighbour has grown so much that another neighbour may be closer;
//  3. another neighbour that is as close (a rival) has got a smaller id, or has a linkage that may round up;
//  4. it is a hub, and the size or the id of a neighbour has changed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rounds/adjacency.hpp"
#include "rounds/cluster_neighbors.hpp"
#include "rounds/constraints.hpp"
#include "rounds/linkage.hpp"

namespace agglo {

template <class Linkage, class Size>
class HubHac {
 public:
  using Stat = typename Linkage::Stat;

  // `limits` forbid merges; none: any two clusters may merge.
  HubHac(const Linkage& linkage, const Limits* limits) : linkage_(linkage), limits_(limits) {}

  // Adds a cluster. Clusters are numbered in the order of these calls.
  void add(Id id, Size size) {
    Cluster& cluster = clusters_.emplace_back();
    cluster.id = id;
    cluster.size = size;
    total_ += size;
  }

  // Adds the combined edges between clusters number x and y.
  void add_edge(Id x, Id y, const Stat& stat) {
    put(x, y, stat);
    put(y, x, stat);
  }

  // Merges mutual nearest neighbours until there are none. Calls record(merges) in every round, ordered by
  // id, which has to keep `limits` up to date.
  template <class Record>
  void run(const Record& record) {
    for (Id x = 0; x < static_cast<Id>(clusters_.size()); ++x) touch(x);
    std::vector<std::pair<Id, Id>> pairs;
    std::vector<Merge> merges;
    do {
      pairs.clear();
      merges.clear();
      const std::vector<Id> touched = std::exchange(touched_, {});
      for (const Id x : touched) {
        clusters_[x].touched = false;
        if (clusters_[x].alive) look(x);
      }
      for (const Id x : touched) {
        const Id y = clusters_[x].nearest;
        if (!clusters_[x].alive || y == kNobody || clusters_[y].nearest != x) continue;
        if (clusters_[x].merging) continue;  // found already, from the other side
        clusters_[x].merging = clusters_[y].merging = true;
        pairs.emplace_back(x, y);
      }
      const auto low = [&](const std::pair<Id, Id>& pair) {
        return std::min(clusters_[pair.first].id, clusters_[pair.second].id);
      };
      std::sort(pairs.begin(), pairs.end(), [&](const auto& p, const auto& q) { return low(p) < low(q); });
      for (const auto& [x, y] : pairs) {
        const auto [first, last] = std::minmax(clusters_[x].id, clusters_[y].id);
        merges.push_back({first, last, clusters_[x].value});
      }
      if (!merges.empty()) record(std::span<const Merge>(merges));
      for (const auto& [x, y] : pairs) degree(x) < degree(y) ? merge(y, x) : merge(x, y);
    } while (!pairs.empty());
  }

 private:
  static constexpr std::size_t kSmall = 32;  // neighbours that are read one by one
  static constexpr bool kGradual = Linkage::growth == Growth::gradual;
  static constexpr double kRounding = 1e-14;  // more than the rounding errors of a linkage's value

  struct Edge {
    Id to;
    Stat stat;
  };

  // A neighbour of a hub. The key orders neighbours as the linkage does, up to rounding errors; it may be too
  // large if the linkage changes once, because the hub has grown.
  struct Entry {
    double key;
    Size size;
    Stat stat;
    Id id, to;
  };

  // The closest first. Neighbours of one size with the same statistics are sorted by id.
  struct Closer {
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.key != b.key) return a.key > b.key;
      if constexpr (kGradual) {
        if (a.size != b.size) return a.size < b.size;
        if (a.stat != b.stat) return a.stat < b.stat;
      }
      return a.id < b.id;
    }
  };

  struct Hub {
    std::set<Entry, Closer> order;
    std::unordered_map<Id, typename std::set<Entry, Closer>::iterator> where;
  };

  // A cluster that has to be looked at once its nearest neighbour, or a rival, is larger than `size`.
  struct Wait {
    double size;
    Id cluster;
    std::uint32_t looks;
    bool operator<(const Wait& other) const { return size > other.size; }
  };

  struct Cluster {
    Id id = kNobody;
    Size size = 0;
    Id nearest = kNobody;
    double value = kNone;     // of the nearest neighbour
    std::uint32_t looks = 0;  // waits from before the last one are void
    bool alive = true, touched = false, merging = false;
    std::vector<Edge> edges;   // unless it is a hub
    std::unique_ptr<Hub> hub;  // if it has, or has had, many neighbours
    std::vector<Id> hubs;      // neighbours that are hubs, perhaps repeatedly, and former ones
    std::vector<Wait> rivals;  // clusters that this one is as close to as their nearest neighbour
    std::vector<Wait> waits;   // a heap of clusters that have this one for their nearest neighbour
  };

  void touch(Id x) {
    if (!std::exchange(clusters_[x].touched, true)) touched_.push_back(x);
  }

  bool may(Id x, Id y) const { return limits_ == nullptr || limits_->may(clusters_[x].id, clusters_[y].id); }

  // ---- edges ----

  std::size_t degree(Id x) const {
    return clusters_[x].hub ? clusters_[x].hub->where.size() : clusters_[x].edges.size();
  }

  Entry entry(Id x, Id y, const Stat& stat) const {
    const Cluster& neighbor = clusters_[y];
    const double own = kGradual ? 1.0 : static_cast<double>(clusters_[x].size);
    return {linkage_.value(stat, own, neighbor.size), neighbor.size, stat, neighbor.id, y};
  }

  void put(Id x, Id y, const Stat& stat) {
    if (clusters_[x].hub) {
      Hub& hub = *clusters_[x].hub;
      const auto found = hub.where.find(y);
      if (found == hub.where.end()) {
        hub.where.emplace(y, hub.order.insert(entry(x, y, stat)).first);
        clusters_[y].hubs.push_back(x);
        return;
      }
      Stat all = found->second->stat;
      Linkage::combine(all, stat);
      hub.order.erase(found->second);
      found->second = hub.order.insert(entry(x, y, all)).first;
      return;
    }
    std::vector<Edge>& edges = clusters_[x].edges;
    const auto found = std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.to == y; });
    if (found != edges.end()) return Linkage::combine(found->stat, stat);
    edges.push_back({y, stat});
    if (edges.size() > kSmall) make_hub(x);
  }

  void make_hub(Id x) {
    const std::vector<Edge> edges = std::exchange(clusters_[x].edges, {});
    clusters_[x].hub = std::make_unique<Hub>();
    for (const Edge& edge : edges) put(x, edge.to, edge.stat);
  }

  void drop(Id x, Id y) {
    if (clusters_[x].hub) {
      Hub& hub = *clusters_[x].hub;
      const auto found = hub.where.find(y);
      hub.order.erase(found->second);
      hub.where.erase(found);
      return;
    }
    std::vector<Edge>& edges = clusters_[x].edges;
    *std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.to == y; }) = edges.back();
    edges.pop_back();
  }

  void drop_both(Id x, Id y) {
    drop(x, y);
    drop(y, x);
  }

  // Sorts y anew among the neighbours of hub x. Whether it is one.
  bool sort_again(Id x, Id y) {
    if (!clusters_[x].hub) return false;
    Hub& hub = *clusters_[x].hub;
    const auto found = hub.where.find(y);
    if (found == hub.where.end()) return false;
    const Entry now = entry(x, y, found->second->stat);
    hub.order.erase(found->second);
    found->second = hub.order.insert(now).first;
    return true;
  }

  // ---- merging ----

  // Merges b into a, which has no fewer neighbours.
  void merge(Id a, Id b) {
    drop_both(a, b);
    const bool renamed = clusters_[b].id < clusters_[a].id;
    clusters_[a].size += clusters_[b].size;
    clusters_[a].id = std::min(clusters_[a].id, clusters_[b].id);
    clusters_[a].merging = false;
    const Cluster merged = std::exchange(clusters_[b], {});
    clusters_[b].alive = false;
    clusters_[b].touched = merged.touched;
    const auto move = [&](Id x, const Stat& stat) {
      drop(x, b);
      put(x, a, stat);
      put(a, x, stat);
      touch(x);
    };
    for (const Edge& edge : merged.edges) move(edge.to, edge.stat);
    if (merged.hub)
      for (const Entry& entry : merged.hub->order) move(entry.to, entry.stat);

    Cluster& cluster = clusters_[a];
    cluster.hubs.insert(cluster.hubs.end(), merged.hubs.begin(), merged.hubs.end());
    if (renamed || limits_ != nullptr || Linkage::growth != Growth::none) {
      std::sort(cluster.hubs.begin(), cluster.hubs.end());
      cluster.hubs.erase(std::unique(cluster.hubs.begin(), cluster.hubs.end()), cluster.hubs.end());
      std::erase_if(cluster.hubs, [&](Id x) { return !sort_again(x, a); });
      for (const Id x : cluster.hubs) touch(x);
    }
    if (renamed || kGradual) tell_rivals(a);
    tell_waits(a);
    touch(a);
  }

  // Touches the clusters that a has become the nearest neighbour of.
  void tell_rivals(Id a) {
    std::erase_if(clusters_[a].rivals, [&](const Wait& rival) {
      const Cluster& cluster = clusters_[rival.cluster];
      if (cluster.looks != rival.looks || cluster.touched) return true;
      const double now = value(rival.cluster, a);
      if (now < cluster.value) return false;
      if (now == cluster.value && clusters_[a].id > clusters_[cluster.nearest].id) return false;
      touch(rival.cluster);
      return true;
    });
  }

  // Touches the clusters that a, their nearest neighbour, has become too large for.
  void tell_waits(Id a) {
    std::vector<Wait>& waits = clusters_[a].waits;
    const double size = clusters_[a].size;
    std::vector<Wait> kept;
    for (; !waits.empty() && waits.front().size < size; waits.pop_back()) {
      std::pop_heap(waits.begin(), waits.end());
      const auto [_, x, looks] = waits.back();
      if (clusters_[x].looks != looks || clusters_[x].touched) continue;
      if (limits_ == nullptr && value(x, a) == clusters_[x].value)
        kept.push_back({size, x, looks});
      else
        touch(x);
    }
    for (const Wait& wait : kept) {
      waits.push_back(wait);
      std::push_heap(waits.begin(), waits.end());
    }
  }

  // The linkage of neighbours x, which is no hub, and y.
  double value(Id x, Id y) const {
    const auto is_y = [&](const Edge& edge) { return edge.to == y; };
    const std::vector<Edge>& edges = clusters_[x].edges;
    return linkage_.value(std::find_if(edges.begin(), edges.end(), is_y)->stat, clusters_[x].size,
                          clusters_[y].size);
  }

  // ---- looking ----

  // Finds the nearest neighbour of x.
  void look(Id x) {
    Cluster& cluster = clusters_[x];
    ++cluster.looks;
    cluster.nearest = kNobody;
    cluster.value = kNone;
    if (cluster.hub)
      look_at_hub(x);
    else
      look_at_edges(x);
  }

  void offer(Cluster& cluster, Id y, double value) const {
    if (value < cluster.value) return;
    if (value == cluster.value && cluster.nearest != kNobody &&
        clusters_[y].id > clusters_[cluster.nearest].id)
      return;
    cluster.nearest = y;
    cluster.value = value;
  }

  double rounding(double value) const {
    return kRounding * (std::fabs(value) + (kGradual ? std::fabs(linkage_.floor) : 0.0));
  }

  void look_at_hub(Id x) {
    Cluster& cluster = clusters_[x];
    const double size = cluster.size;
    auto& order = cluster.hub->order;
    while (!order.empty()) {
      const Entry first = *order.begin();
      const double value = linkage_.value(first.stat, size, first.size);
      if (!may(x, first.to)) {
        drop_both(x, first.to);
      } else if (Linkage::growth == Growth::once && value != first.key) {
        sort_again(x, first.to);
      } else {
        offer(cluster, first.to, value);
        break;
      }
    }
    if (!kGradual || order.empty()) return;
    // Rounding may order neighbours otherwise than their keys do.
    const double least = order.begin()->key - size * rounding(cluster.value);
    for (auto it = order.begin(); it != order.end() && it->key >= least;) {
      if (!may(x, it->to)) {
        const Id y = it->to;
        ++it;
        drop_both(x, y);
        continue;
      }
      offer(cluster, it->to, linkage_.value(it->stat, size, it->size));
      Entry last = *it;  // those of the same size and statistics have the same linkage and larger ids
      last.id = std::numeric_limits<Id>::max();
      it = order.upper_bound(last);
    }
  }

  void look_at_edges(Id x) {
    Cluster& cluster = clusters_[x];
    const double size = cluster.size;
    if (limits_ != nullptr)
      for (std::size_t k = cluster.edges.size(); k-- > 0;)
        if (!may(x, cluster.edges[k].to)) drop_both(x, cluster.edges[k].to);
    const auto value_of = [&](const Edge& edge) {
      return linkage_.value(edge.stat, size, clusters_[edge.to].size);
    };
    for (const Edge& edge : cluster.edges) offer(cluster, edge.to, value_of(edge));
    if (cluster.edges.size() < 2) return;  // it keeps its nearest neighbour, if there is one

    // Clusters that are farther than `floor` may get as close as that by growing.
    const double floor = kGradual ? linkage_.floor : kNone;
    double others = floor;
    const Stat* nearest = nullptr;
    for (const Edge& edge : cluster.edges) {
      if (edge.to == cluster.nearest) {
        nearest = &edge.stat;
        continue;
      }
      const double most = std::max(value_of(edge), floor);
      others = std::max(others, most);
      if (most >= cluster.value - (kGradual ? rounding(cluster.value) : 0.0))
        clusters_[edge.to].rivals.push_back({0, x, cluster.looks});
    }
    wait(x, *nearest, others);
  }

  // Has x looked at again once its nearest neighbour may have grown too large to stay the nearest.
  void wait(Id x, const Stat& stat, double others) {
    const Cluster& cluster = clusters_[x];
    Cluster& nearest = clusters_[cluster.nearest];
    double holds = static_cast<double>(nearest.size), fails = static_cast<double>(total_);
    if (limits_ == nullptr) {
      if constexpr (Linkage::growth == Growth::none) return;
      if constexpr (Linkage::growth == Growth::once)
        if (linkage_.value(stat, cluster.size, 2 * total_) == cluster.value) return;
      if constexpr (kGradual) {
        const double least = others + rounding(others);
        const auto stays = [&](double size) { return linkage_.value(stat, cluster.size, size) > least; };
        if (stays(fails)) return;
        if (stays(holds))
          for (int step = 0; step < 40 && fails - holds > 1e-6 * holds; ++step) {
            const double middle = holds + (fails - holds) / 2;
            (stays(middle) ? holds : fails) = middle;
          }
      }
    }
    nearest.waits.push_back({holds, x, cluster.looks});
    std::push_heap(nearest.waits.begin(), nearest.waits.end());
  }

  const Linkage linkage_;
  const Limits* const limits_;
  std::vector<Cluster> clusters_;
  double total_ = 0;  // size of all clusters
  std::vector<Id> touched_;
};

}  // namespace agglo
