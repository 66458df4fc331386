// All rounds of SCC, Affinity and HAC, with nearest neighbours kept lazily.
//
// Every cluster is in the bucket of the first threshold that an upper bound on its best linkage reaches, and
// is not looked at before. The bound comes from its last look at its neighbours: `best` was the nearest at
// `value`, and no other neighbour is or will be closer than `second` (the linkages are reducible, and what
// has no edge counts as `floor`). While `best` is unchanged and the only one so close, it is exact; if `best`
// has grown, or the cluster itself was merged, only a bound is left, and lists are read once that bound
// reaches the threshold. Merging clusters does not touch their lists: they are chained, and combined at the
// next look.
#include "rounds.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "linkage.hpp"

namespace agglo {
namespace {

using Id = std::int32_t;  // a point, or the cluster whose smallest point it is

constexpr std::int64_t kGrain = 512;
constexpr Id kNobody = -1;

// A cluster's neighbours with the statistics of the edges to them, in one block of memory.
template <class Stat>
class List {
 public:
  List() = default;
  List(const std::vector<Id>& ids, const std::vector<Stat>& stats) : length_(static_cast<Id>(ids.size())) {
    block_.reset(static_cast<std::byte*>(std::malloc(ids.size() * (sizeof(Stat) + sizeof(Id)) + 1)));
    if (!block_) throw std::bad_alloc();
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

// Neighbours being combined: a small hash table over dense columns.
template <class Linkage>
class Gather {
 public:
  using Stat = typename Linkage::Stat;

  void start(std::int64_t entries) {
    ids.clear();
    stats.clear();
    bits_ = std::max(4, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(entries))) + 1);
    const std::size_t slots = std::size_t{1} << bits_;
    if (table_.size() < slots) table_.resize(slots);
    std::fill_n(table_.begin(), slots, kNobody);
  }

  void add(Id id, Stat stat) {
    const std::size_t mask = (std::size_t{1} << bits_) - 1;
    std::size_t slot = (static_cast<std::uint32_t>(id) * 2654435769u) >> (32 - bits_);
    for (;; slot = (slot + 1) & mask) {
      const Id place = table_[slot];
      if (place == kNobody) {
        table_[slot] = static_cast<Id>(ids.size());
        ids.push_back(id);
        stats.push_back(stat);
        return;
      }
      if (ids[place] == id) return Linkage::combine(stats[place], stat);
    }
  }

  std::vector<Id> ids;
  std::vector<Stat> stats;
  std::vector<Id> pending;  // clusters whose lists have to be read

 private:
  std::vector<Id> table_;
  int bits_ = 0;
};

template <class Linkage>
class Engine {
 public:
  Engine(const GraphView& graph, const Plan& plan, const Linkage& linkage, Team& team, const Report& report)
      : graph_(graph),
        plan_(plan),
        linkage_(linkage),
        team_(team),
        n_(static_cast<Id>(graph.size())),
        sign_(plan.kind == Kind::similarity ? 1.0 : -1.0),
        slack_(1e-12 * (std::isfinite(linkage.floor) ? std::fabs(linkage.floor) : 0.0)),
        report_([this, &report](std::int64_t, std::int64_t) {
          if (report) report(n_ - clusters_, n_);
        }),
        clusters_(n_),
        cell_(n_),
        nearest_(n_),
        chain_(n_),
        node_(n_),
        gather_(team.size()) {
    for (Id i = 0; i < n_; ++i) {
      cell_[i] = {i, 1};
      chain_[i].last = i;
      node_[i] = i;
    }
    forest_.parent.assign(n_, kNobody);
    forest_.value.assign(n_, std::numeric_limits<double>::quiet_NaN());
    forest_.size.assign(n_, 1);
    forest_.round.assign(n_, 0);
    // Without thresholds there is one that everything reaches, kept until nothing merges.
    for (const double threshold : plan.thresholds)
      thresholds_.push_back(static_cast<float>(sign_ * threshold));
    if (thresholds_.empty()) thresholds_.push_back(-std::numeric_limits<float>::infinity());
    stay_ = plan.until_stable || plan.thresholds.empty();
    buckets_.resize(thresholds_.size());
  }

  Forest run() {
    team_.ranges(
        n_, kGrain * 8,
        [&](std::int64_t first, std::int64_t last, int) {
          for (std::int64_t i = first; i < last; ++i) look_at_row(static_cast<Id>(i));
        },
        report_);
    for (Id i = 0; i < n_; ++i) shelve(i, 0);
    for (std::size_t t = 0; t < thresholds_.size() && clusters_ > 1; ++t)
      while (round(t) && stay_) {
      }
    return std::move(forest_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Stat = typename Linkage::Stat;

  struct Cell {
    Id up;    // towards the cluster's smallest point, whose own `up` is itself
    Id size;  // of the cluster, at its smallest point
  };

  // What is known of a cluster's neighbours.
  struct Nearest {
    double value = kNone;  // the linkage of the nearest at the last look; if there is none, a bound on any
    Id best = kNobody;     // that nearest neighbour
    Id best_size = 0;      // and its size then
    float second = -std::numeric_limits<float>::infinity();  // a bound on all others
    Id bucket = 0;                                           // where the cluster is shelved
  };

  // The points whose lists together are the cluster's; a point without a list has its row of the graph.
  struct Chain {
    Id next = kNobody;
    Id last = kNobody;  // at the cluster's smallest point
    List<Stat> list;
  };

  // One round at threshold t: find nearest neighbours, keep those that reach it, merge components.
  // Returns whether anything merged.
  bool round(std::size_t t) {
    const auto start = Clock::now();
    std::vector<Id> due = take(t);
    team_.ranges(
        static_cast<std::int64_t>(due.size()), kGrain,
        [&](std::int64_t first, std::int64_t last, int worker) {
          refresh({due.data() + first, due.data() + last}, t, gather_[worker]);
        },
        report_);
    std::vector<Id> joining = select(due, t);
    if (joining.empty()) return false;
    const std::int64_t before = clusters_;
    merge(joining, t);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    const double threshold =
        plan_.thresholds.empty() ? std::numeric_limits<double>::quiet_NaN() : plan_.thresholds[t];
    forest_.rounds.push_back({threshold, before, clusters_, seconds.count()});
    return true;
  }

  // ---- nearest neighbours ----

  bool reaches(double value, std::size_t t) const { return static_cast<float>(value) >= thresholds_[t]; }

  // The first look at a point: its row of the graph, each neighbour a cluster of one.
  void look_at_row(Id x) {
    Search search(linkage_.floor);
    for (std::int64_t k = graph_.indptr[x]; k < graph_.indptr[x + 1]; ++k)
      search.offer(graph_.indices[k], linkage_.value(linkage_.of(graph_.weights[k]), 1, 1));
    keep(x, search);
  }

  struct Search {
    explicit Search(double floor) : others(floor) {}
    void offer(Id candidate, double candidate_value) {
      if (candidate_value > value || (candidate_value == value && candidate < best)) {
        others = std::max(others, value);
        value = candidate_value;
        best = candidate;
      } else {
        others = std::max(others, candidate_value);
      }
    }
    Id best = kNobody;
    double value = kNone, others;
  };

  void keep(Id x, const Search& found) {
    Nearest& nearest = nearest_[x];
    nearest.best = found.best;
    nearest.value = found.value;
    nearest.best_size = found.best == kNobody ? 0 : cell_[found.best].size;
    nearest.second = above(found.others);
  }

  // All that is known of x's neighbours is that none is closer than `most`.
  void keep_bound(Id x, double most) {
    nearest_[x].best = kNobody;
    nearest_[x].value = most;
  }

  // The nearest float that is no smaller, and larger by more than the rounding errors of a linkage's value.
  float above(double bound) const {
    if (bound == kNone) return -std::numeric_limits<float>::infinity();
    const double raised = bound + 2e-15 * std::fabs(bound) + 2e-3 * slack_;
    float rounded = static_cast<float>(raised);
    if (rounded < raised) rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
    return rounded;
  }

  Id root(Id i) {
    // Threads shorten paths under each other's feet; any ancestor they see or leave is a right one.
    const auto up = [this](Id j) { return std::atomic_ref<Id>(cell_[j].up); };
    for (Id parent = up(i).load(std::memory_order_relaxed); parent != i;) {
      const Id above = up(parent).load(std::memory_order_relaxed);
      if (above != parent) up(i).store(above, std::memory_order_relaxed);
      i = parent;
      parent = above;
    }
    return i;
  }

  bool alive(Id x) { return std::atomic_ref<Id>(cell_[x].up).load(std::memory_order_relaxed) == x; }

  bool exact(Id x) {
    const Nearest& nearest = nearest_[x];
    const Id y = nearest.best;
    return y != kNobody && nearest.second < nearest.value && alive(y) &&
           (Linkage::steadfast || cell_[y].size == nearest.best_size);
  }

  // No neighbour of x is closer than this.
  double bound(Id x) {
    const Nearest& nearest = nearest_[x];
    if (nearest.best == kNobody) return nearest.value;
    const double others = nearest.second;
    const Id size = cell_[root(nearest.best)].size;
    if (size == nearest.best_size) return std::max(nearest.value, others);
    return raised(std::max(linkage_.grown(nearest.value, others, nearest.best_size, size), others));
  }

  // A bound made safe from the rounding errors of its own computation.
  double raised(double most) const { return most + slack_ + 1e-12 * std::fabs(most); }

  // Makes the nearest neighbours of clusters exact, or finds bounds below threshold t without reading any
  // list.
  void refresh(std::span<const Id> clusters, std::size_t t, Gather<Linkage>& gather) {
    std::vector<Id>& pending = gather.pending;
    pending.clear();
    for (const Id x : clusters)
      if (!settled(x, t)) pending.push_back(x);
    // Lists lie scattered in memory: what will be read soon is asked for early, step by step.
    const auto ahead = [&](std::size_t k) { return k < pending.size() ? pending[k] : pending.back(); };
    for (std::size_t k = 0; k < pending.size(); ++k) {
      const Id soon = ahead(k + 12), sooner = ahead(k + 8), next = ahead(k + 4);
      __builtin_prefetch(&chain_[soon]);
      __builtin_prefetch(&graph_.indptr[soon]);
      if (const Id owner = chain_[sooner].next; owner != kNobody) {
        __builtin_prefetch(&chain_[owner]);
        __builtin_prefetch(&graph_.indptr[owner]);
      }
      fetch(next);
      if (const Id owner = chain_[next].next; owner != kNobody) fetch(owner);
      look(pending[k], gather);
    }
  }

  bool settled(Id x, std::size_t t) {
    if constexpr (Linkage::steadfast)
      if (nearest_[x].best != kNobody) nearest_[x].best = root(nearest_[x].best);
    if (exact(x)) return true;
    const double most = bound(x);
    if (reaches(most, t)) return false;
    keep_bound(x, most);
    return true;
  }

  // Combines x's lists into one, under the present clusters, and finds its nearest neighbour.
  void look(Id x, Gather<Linkage>& gather) {
    std::int64_t entries = 0;
    for (Id owner = x; owner != kNobody; owner = chain_[owner].next) entries += length(owner);
    gather.start(std::min(entries, clusters_));
    for (Id owner = x; owner != kNobody; owner = chain_[owner].next) {
      if (const auto& list = chain_[owner].list) {
        read(x, list.ids(), list.size(), gather, [stats = list.stats()](std::int64_t k) { return stats[k]; });
      } else {
        const std::int64_t first = graph_.indptr[owner];
        read(x, graph_.indices.data() + first, length(owner), gather,
             [this, weights = graph_.weights.data() + first](std::int64_t k) {
               return linkage_.of(weights[k]);
             });
      }
    }
    Search search(linkage_.floor);
    const double size = cell_[x].size;
    for (std::size_t k = 0; k < gather.ids.size(); ++k)
      search.offer(gather.ids[k], linkage_.value(gather.stats[k], size, cell_[gather.ids[k]].size));
    keep(x, search);

    if (chain_[x].next != kNobody || chain_[x].list) {
      for (Id owner = x; owner != kNobody;) {
        chain_[owner].list = {};
        owner = std::exchange(chain_[owner].next, kNobody);
      }
      chain_[x].last = x;
      chain_[x].list = List<Stat>(gather.ids, gather.stats);
    }
  }

  void fetch(Id owner) const {
    if (chain_[owner].list) {
      prefetch(chain_[owner].list.ids(), chain_[owner].list.size());
      prefetch(chain_[owner].list.stats(), chain_[owner].list.size());
    } else {
      prefetch(graph_.indices.data() + graph_.indptr[owner], length(owner));
      prefetch(graph_.weights.data() + graph_.indptr[owner], length(owner));
    }
  }

  template <class T>
  static void prefetch(const T* items, std::int64_t length) {
    constexpr std::int64_t kMost = 1024;  // bytes; beyond, the machine has seen where it goes
    const auto* bytes = reinterpret_cast<const char*>(items);
    for (std::int64_t b = 0; b < std::min<std::int64_t>(length * sizeof(T), kMost); b += 64)
      __builtin_prefetch(bytes + b);
  }

  std::int64_t length(Id owner) const {
    const auto& list = chain_[owner].list;
    return list ? list.size() : graph_.indptr[owner + 1] - graph_.indptr[owner];
  }

  template <class StatAt>
  void read(Id x, const Id* ids, std::int64_t length, Gather<Linkage>& gather, const StatAt& stat) {
    constexpr std::int64_t kAhead = 12;
    for (std::int64_t k = 0; k < length; ++k) {
      if (k + kAhead < length) __builtin_prefetch(&cell_[ids[k + kAhead]]);
      const Id id = root(ids[k]);
      if (id != x) gather.add(id, stat(k));
    }
  }

  // ---- buckets ----

  // Puts x where the first threshold from t on that its bound reaches will find it.
  void shelve(Id x, std::size_t t) {
    Nearest& nearest = nearest_[x];
    if (nearest.value == kNone) return;  // no neighbours, now or ever
    const double most =
        nearest.best == kNobody ? nearest.value : std::max(nearest.value, double{nearest.second});
    const auto place = std::partition_point(thresholds_.begin() + t, thresholds_.end(), [&](float threshold) {
      return threshold > static_cast<float>(most);
    });
    nearest.bucket = static_cast<Id>(place - thresholds_.begin());
    if (place != thresholds_.end()) buckets_[nearest.bucket].push_back(x);
  }

  // The clusters in bucket t, each once.
  std::vector<Id> take(std::size_t t) {
    std::vector<Id> due = std::exchange(buckets_[t], {});
    std::erase_if(due, [&](Id x) {
      const bool stays = alive(x) && nearest_[x].bucket == static_cast<Id>(t);
      if (stays) nearest_[x].bucket = kOut;
      return !stays;
    });
    return due;
  }

  // Of the clusters that were due, those that join their nearest neighbour; the others are shelved again.
  std::vector<Id> select(const std::vector<Id>& due, std::size_t t) {
    std::vector<Id> joining;
    for (const Id x : due) {
      Nearest& nearest = nearest_[x];
      if (nearest.best == kNobody || !reaches(nearest.value, t)) continue;
      if (plan_.mutual && nearest_[nearest.best].best != x) continue;
      nearest.bucket = kJoining;
      joining.push_back(x);
    }
    const std::size_t later = stay_ && !joining.empty() ? t : t + 1;
    for (const Id x : due)
      if (nearest_[x].bucket != kJoining) shelve(x, later);
    return joining;
  }

  // ---- merging ----

  // The components of the edges from each joining cluster to its nearest neighbour become clusters.
  void merge(const std::vector<Id>& joining, std::size_t t) {
    std::vector<Id> members = joining;  // all clusters that take part
    for (const Id x : joining) {
      const Id y = nearest_[x].best;
      Id& bucket = nearest_[y].bucket;
      if (bucket != kJoining && std::exchange(bucket, kJoined) != kJoined) members.push_back(y);
    }
    for (const Id x : joining) {
      const Id a = root(x), b = root(nearest_[x].best);
      if (a != b) cell_[std::max(a, b)].up = std::min(a, b);
    }
    struct Part {
      Id cluster, member, size;
    };
    std::vector<Part> parts;
    parts.reserve(members.size());
    for (const Id member : members) parts.push_back({root(member), member, cell_[member].size});
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return a.cluster != b.cluster ? a.cluster < b.cluster : a.member < b.member;
    });

    // Sizes of all new clusters first: the bounds below look at other new clusters, too.
    for (const Part& part : parts)
      if (part.member != part.cluster) cell_[part.cluster].size += part.size;
    const auto round = static_cast<Id>(forest_.rounds.size() + 1);
    std::vector<std::pair<Id, double>> bounds;
    for (auto first = parts.begin(); first != parts.end();) {
      const Id cluster = first->cluster;
      const auto last =
          std::find_if(first, parts.end(), [&](const Part& part) { return part.cluster != cluster; });
      const auto parent = static_cast<Id>(forest_.parent.size());
      typename Linkage::Blend blend;
      double farthest = std::numeric_limits<double>::infinity();
      for (auto part = first; part != last; ++part) {
        const Id x = part->member;
        const Nearest& nearest = nearest_[x];
        const bool inside = nearest.best != kNobody && root(nearest.best) == cluster;
        blend.add(inside ? double{nearest.second} : bound(x), part->size, linkage_.floor);
        if (nearest.bucket == kJoining) farthest = std::min(farthest, nearest.value);
        forest_.parent[node_[x]] = parent;
        if (x != cluster) {
          chain_[chain_[cluster].last].next = x;
          chain_[cluster].last = chain_[x].last;
        }
      }
      clusters_ -= last - first - 1;
      forest_.parent.push_back(kNobody);
      forest_.value.push_back(sign_ * farthest);
      forest_.size.push_back(cell_[cluster].size);
      forest_.round.push_back(round);
      node_[cluster] = parent;
      bounds.emplace_back(cluster, raised(blend.of(cell_[cluster].size)));
      first = last;
    }
    // Only now may what was known of the clusters be overwritten: the bounds were made of it.
    for (const auto& [cluster, most] : bounds) {
      keep_bound(cluster, most);
      shelve(cluster, stay_ ? t : t + 1);
    }
  }

  // What `bucket` says of a cluster that is in none: taken out, about to join another, about to be joined.
  static constexpr Id kOut = -1, kJoining = -2, kJoined = -3;

  const GraphView graph_;
  const Plan plan_;
  const Linkage linkage_;
  Team& team_;
  const Id n_;
  const double sign_, slack_;
  const Report report_;
  std::int64_t clusters_;

  // By cluster, at its smallest point.
  std::vector<Cell> cell_;
  std::vector<Nearest> nearest_;
  std::vector<Chain> chain_;
  std::vector<Id> node_;

  std::vector<float> thresholds_;
  bool stay_;
  std::vector<std::vector<Id>> buckets_;
  std::vector<Gather<Linkage>> gather_;
  Forest forest_;
};

template <class Linkage>
Forest run(const GraphView& graph, const Plan& plan, const Linkage& linkage, Team& team,
           const Report& report) {
  return Engine<Linkage>(graph, plan, linkage, team, report).run();
}

template <class Sum>
Forest run_counted(const GraphView& graph, const Plan& plan, Team& team, const Report& report) {
  if (!plan.missing)
    return run(graph, plan, CountedAverageLinkage<Sum, true>(plan.kind, 0, plan.shift), team, report);
  return run(graph, plan, CountedAverageLinkage<Sum, false>(plan.kind, *plan.missing, plan.shift), team,
             report);
}

Forest run_average(const GraphView& graph, const Plan& plan, Team& team, const Report& report) {
  if (plan.wide) return run_counted<__int128>(graph, plan, team, report);
  if (plan.missing && *plan.missing == 0)
    return run(graph, plan, AverageLinkage(plan.kind, plan.shift), team, report);
  return run_counted<std::int64_t>(graph, plan, team, report);
}

}  // namespace

Forest run_rounds(const GraphView& graph, const Plan& plan, Team& team, const Report& report) {
  if (graph.size() > std::numeric_limits<Id>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be clustered, got " + std::to_string(graph.size()));
  switch (plan.linkage) {
    case Linkage::average:
      return run_average(graph, plan, team, report);
    case Linkage::single:
      return run(graph, plan, SingleLinkage(plan.kind), team, report);
    case Linkage::complete:
      if (plan.missing) return run(graph, plan, CompleteLinkage(plan.kind, *plan.missing), team, report);
      return run(graph, plan, PresentCompleteLinkage(plan.kind), team, report);
  }
  throw std::logic_error("unknown linkage");
}

}  // namespace agglo
