#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "rounds/hub_hac.hpp"
#include "test_case.hpp"

using namespace agglo;

namespace {

struct Edge {
  Id from, to;
  float weight;
};

struct TestGraph {
  Id n;
  std::vector<Edge> edges;
};

// A graph without edges between equal points and without duplicate edges, with shuffled ids.
TestGraph make_graph(Id n, const std::vector<std::pair<Id, Id>>& ends, const std::vector<float>& weights,
                     std::mt19937& random) {
  std::vector<Id> ids(n);
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), random);
  std::set<std::pair<Id, Id>> seen;
  TestGraph graph{n, {}};
  for (const auto& [i, j] : ends)
    if (i != j && seen.insert(std::minmax(i, j)).second)
      graph.edges.push_back({ids[i], ids[j], weights[random() % weights.size()]});
  return graph;
}

TestGraph make_grid(Id side, const std::vector<float>& weights, std::mt19937& random) {
  std::vector<std::pair<Id, Id>> ends;
  for (Id i = 0; i < side * side; ++i) {
    if (i % side != side - 1) ends.push_back({i, i + 1});
    if (i + side < side * side) ends.push_back({i, i + side});
  }
  return make_graph(side * side, ends, weights, random);
}

// A hub with n - 1 neighbours, which are a path.
TestGraph make_fan(Id n, const std::vector<float>& weights, std::mt19937& random) {
  std::vector<std::pair<Id, Id>> ends;
  for (Id i = 1; i < n; ++i) {
    ends.push_back({0, i});
    if (i > 1) ends.push_back({i - 1, i});
  }
  return make_graph(n, ends, weights, random);
}

// A complete bipartite graph with 4 points on one side.
TestGraph make_bipartite(Id n, const std::vector<float>& weights, std::mt19937& random) {
  std::vector<std::pair<Id, Id>> ends;
  for (Id i = 4; i < n; ++i)
    for (Id hub = 0; hub < 4; ++hub) ends.push_back({hub, i});
  return make_graph(n, ends, weights, random);
}

TestGraph make_random(Id n, const std::vector<float>& weights, std::mt19937& random) {
  std::vector<std::pair<Id, Id>> ends;
  for (Id i = 0; i < 3 * n; ++i)
    ends.push_back({static_cast<Id>(random() % n), static_cast<Id>(random() % n)});
  return make_graph(n, ends, weights, random);
}

const auto kMakers = {make_grid, make_fan, make_bipartite, make_random};
TestGraph make(TestGraph (*maker)(Id, const std::vector<float>&, std::mt19937&), Id n,
               const std::vector<float>& weights, std::mt19937& random) {
  return maker(maker == make_grid ? static_cast<Id>(std::sqrt(n)) : n, weights, random);
}

struct Record {
  std::size_t round;
  Id low, high;
  double value;
  bool operator==(const Record&) const = default;
};

template <class Linkage>
std::vector<Record> run_hub_hac(const TestGraph& graph, const std::vector<double>& sizes,
                                const Linkage& linkage, ConstraintTracker* constraints) {
  HubHac<Linkage> hac(linkage, constraints);
  for (Id i = 0; i < graph.n; ++i) hac.add(i, sizes[i]);
  for (const Edge& edge : graph.edges) {
    if constexpr (UsesPointWeights<Linkage>)
      hac.add_edge(edge.from, edge.to, linkage.stat(edge.weight, sizes[edge.from] * sizes[edge.to]));
    else
      hac.add_edge(edge.from, edge.to, linkage.stat(edge.weight));
  }
  std::vector<Record> records;
  std::size_t round = 0;
  hac.run([&](std::span<const Merge> merges) {
    ++round;
    for (const auto& [low, high, value] : merges) {
      records.push_back({round, low, high, value});
      if (constraints) constraints->merge(low, high);
    }
  });
  return records;
}

// Merges mutual nearest neighbours by comparing all clusters in every round.
template <class Linkage>
std::vector<Record> run_slowly(const TestGraph& graph, std::vector<double> sizes, const Linkage& linkage,
                               ConstraintTracker* constraints) {
  using Stat = typename Linkage::Stat;
  std::vector<std::vector<std::optional<Stat>>> stats(graph.n, std::vector<std::optional<Stat>>(graph.n));
  for (const Edge& edge : graph.edges) {
    Stat stat;
    if constexpr (UsesPointWeights<Linkage>)
      stat = linkage.stat(edge.weight, sizes[edge.from] * sizes[edge.to]);
    else
      stat = linkage.stat(edge.weight);
    stats[edge.from][edge.to] = stats[edge.to][edge.from] = stat;
  }
  std::vector<Record> records;
  for (std::size_t round = 1;; ++round) {
    std::vector<Id> nearest(graph.n, kNoCluster);
    std::vector<double> value(graph.n, kNoLinkage);
    for (Id x = 0; x < graph.n; ++x)
      for (Id y = 0; y < graph.n; ++y) {
        if (!stats[x][y] || (constraints && !constraints->allows(x, y))) continue;
        const double now = linkage.value(*stats[x][y], sizes[x], sizes[y]);
        if (nearest[x] == kNoCluster || now > value[x]) nearest[x] = y, value[x] = now;
      }
    const std::size_t before = records.size();
    for (Id x = 0; x < graph.n; ++x)
      if (nearest[x] > x && nearest[nearest[x]] == x) records.push_back({round, x, nearest[x], value[x]});
    for (std::size_t k = before; k < records.size(); ++k) {
      const Id low = records[k].low, high = records[k].high;
      sizes[low] += sizes[high];
      if (constraints) constraints->merge(low, high);
      for (Id y = 0; y < graph.n; ++y) {
        if (stats[high][y] && y != low) {
          if (stats[low][y])
            Linkage::combine(*stats[low][y], *stats[high][y]);
          else
            stats[low][y] = stats[high][y];
          stats[y][low] = stats[low][y];
        }
        stats[high][y] = stats[y][high] = std::nullopt;
      }
      stats[low][low] = std::nullopt;
    }
    if (records.size() == before) return records;
  }
}

// Compares HubHac with run_slowly() for all linkages, on graphs of all shapes with many ties.
// Points weigh 1 to 3 times `unit`, or 1 if it is 0.
void compare_with_slow_hac(const Constraints& constraints, double unit) {
  std::mt19937 random(5);
  const auto compare = [&](const TestGraph& graph, const auto& linkage) {
    std::vector<double> sizes(graph.n);
    for (double& size : sizes) size = unit == 0 ? 1 : unit * static_cast<double>(1 + random() % 3);
    const auto tracker = [&] { return ConstraintTracker(graph.n, constraints); };
    ConstraintTracker first = tracker(), second = tracker();
    const bool use = constraints.forbid_merges();
    CHECK(run_hub_hac(graph, sizes, linkage, use ? &first : nullptr) ==
          run_slowly(graph, sizes, linkage, use ? &second : nullptr));
  };
  for (const auto maker : kMakers)
    for (const std::vector<float>& weights :
         {std::vector<float>{0.1f}, {0.5f, 1.0f}, {0.1f, 0.3f, 0.7f, 0.9f}})
      for (const Kind kind : {Kind::similarity, Kind::distance}) {
        const TestGraph graph = make(maker, 64, weights, random);
        for (const std::optional<double> missing :
             {std::optional<double>{}, std::optional(0.0), std::optional(double{weights.front()}),
              std::optional(double{weights.back()}), std::optional(4.0)})
          compare(graph, AverageLinkage<std::int64_t>(kind, missing, 40, unit == 0 ? 0 : 20));
        if (unit != 0) continue;  // only averages use the weights of the points
        compare(graph, EdgeLinkage(kind, true));
        compare(graph, EdgeLinkage(kind, false));
        compare(graph, CompleteLinkage(kind, weights.back()));
      }
}

// Counts how often HubHac computes a linkage.
struct CountingLinkage : AverageLinkage<std::int64_t> {
  using AverageLinkage::AverageLinkage;
  double value(const Stat& stat, double a, double b) const {
    ++count;
    return AverageLinkage::value(stat, a, b);
  }
  static inline std::int64_t count = 0;
};

// Returns the number of linkages that HubHac computes, divided by the number of edges.
double linkages_per_edge(const TestGraph& graph, double missing, ConstraintTracker* constraints = nullptr) {
  const std::int64_t before = CountingLinkage::count;
  const CountingLinkage linkage(Kind::distance, missing, 30, 0);
  run_hub_hac(graph, std::vector<double>(graph.n, 1.0), linkage, constraints);
  return static_cast<double>(CountingLinkage::count - before) / static_cast<double>(graph.edges.size());
}

}  // namespace

TEST_CASE("the merges are those of comparing all clusters in every round") { compare_with_slow_hac({}, 0); }

TEST_CASE("points of different weights merge as if all clusters were compared in every round") {
  for (const double unit : {1.0, 0.25, double{0.1f}}) compare_with_slow_hac({}, unit);
}

TEST_CASE("with a maximum weight, the merges are those of comparing all clusters in every round") {
  for (const double max_weight : {3.0, 20.0, 48.0}) {
    Constraints constraints;
    constraints.max_weight = max_weight;
    compare_with_slow_hac(constraints, 0);
  }
}

TEST_CASE(
    "with cannot-link pairs and groups, the merges are those of comparing all clusters in every round") {
  std::mt19937 random(9);
  for (const Id pairs : {1, 5, 100}) {
    std::vector<Id> cannot_link, groups;
    for (Id k = 0; k < pairs; ++k) {
      const auto i = static_cast<Id>(random() % 32), j = static_cast<Id>(32 + random() % 32);
      cannot_link.insert(cannot_link.end(), {i, j});
      if (k % 2 == 0 && k < 64) groups.insert(groups.end(), {k, k % 3});
    }
    Constraints constraints;
    constraints.cannot_link = cannot_link;
    constraints.groups = groups;
    compare_with_slow_hac(constraints, 0);
  }
}

TEST_CASE("if all linkages tie, the work per edge grows at most like log n") {
  for (const auto maker : kMakers) {
    std::mt19937 random(7);
    for (const Id n : {400, 1'600, 6'400}) {
      const TestGraph graph = make(maker, n, {0.5f}, random);
      CHECK(linkages_per_edge(graph, 0.5) < 4 * std::log2(n));
    }
  }
}

// Random graphs are not tested. They have many hubs next to the largest one, and each of its merges reads
// them.
TEST_CASE("if all edges are farther than missing pairs, the work per edge grows at most like log n") {
  for (const auto maker : {make_grid, make_fan, make_bipartite}) {
    std::mt19937 random(7);
    for (const Id n : {400, 1'600, 6'400})
      for (const std::vector<float>& weights : {std::vector<float>{0.5f}, {0.5f, 1.0f}, {0.3f, 0.6f, 0.7f}})
        for (const double missing : {0.0, 0.25})
          CHECK(linkages_per_edge(make(maker, n, weights, random), missing) < 4 * std::log2(n));
  }
}

TEST_CASE("common neighbours of hubs are searched only when a hub finds them") {
  for (const double missing : {0.5, 1.0}) {
    std::mt19937 random(7);
    for (const Id n : {400, 1'600, 6'400})
      CHECK(linkages_per_edge(make_bipartite(n, {0.5f, 1.0f}, random), missing) < 4 * std::log2(n));
  }
}

TEST_CASE("constraints do not add a pass over the neighbours of a hub to each merge") {
  for (const auto maker : kMakers) {
    std::mt19937 random(7);
    for (const Id n : {400, 1'600, 6'400})
      for (const double max_weight : {0.75 * n, 2.0 * n}) {
        const TestGraph graph = make(maker, n, {0.5f}, random);
        const std::vector<Id> cannot_link{0, 1, 2, 3};
        Constraints constraints;
        constraints.cannot_link = cannot_link;
        constraints.max_weight = max_weight;
        ConstraintTracker tracker(graph.n, constraints);
        CHECK(linkages_per_edge(graph, 0.5, &tracker) < 4 * std::log2(n));
      }
  }
}
