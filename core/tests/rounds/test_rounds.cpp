#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "rounds/rounds.hpp"
#include "test_case.hpp"

using namespace agglo;

namespace {

// Returns a random graph with many equal weights, clusters of several scales and some isolated points.
Graph random_graph(std::int32_t n, int degree, unsigned seed, Kind kind, ThreadPool& pool) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> sources, targets;
  std::vector<float> weights;
  for (std::int32_t i = 0; i < n; ++i)
    for (int k = 0; k < degree; ++k) {
      const auto reach = static_cast<std::int32_t>(1 + random() % 20);
      sources.push_back(i);
      targets.push_back((i + reach) % n);
      weights.push_back(static_cast<float>(1 + random() % 8) / 8);
    }
  const Graph rows = edges_to_csr(n, sources, targets, weights);
  return symmetrize({rows.indptr, rows.indices, rows.weights}, kind, pool);
}

void threads_do_not_matter(Kind kind, Linkage linkage, std::optional<double> missing, std::size_t limbs,
                           bool stable, bool mutual, const Constraints& constraints = {}) {
  ThreadPool one(1);
  const Graph graph = random_graph(400, 4, 7, kind, one);
  const GraphView view{graph.indptr, graph.indices, graph.weights};
  CHECK(find_graph_violation(view, one).empty());
  std::vector<double> thresholds;
  for (int i = 0; i < 30; ++i) thresholds.push_back(kind == Kind::similarity ? 1 - i / 30.0 : i / 30.0);
  RoundPlan plan;
  plan.kind = kind;
  plan.linkage = linkage;
  plan.missing = missing;
  plan.shift = static_cast<int>(64 * limbs) - 34;
  plan.limbs = limbs;
  if (!mutual) plan.thresholds = thresholds;
  plan.until_stable = stable;
  plan.mutual = mutual;
  const Forest expected = run_rounds(view, plan, constraints, one);
  CHECK(expected.parent.size() > 400);
  for (const int threads : {2, 8}) {
    ThreadPool pool(threads);
    const Forest forest = run_rounds(view, plan, constraints, pool);
    CHECK(forest.parent == expected.parent);
    CHECK(forest.size == expected.size);
    CHECK(forest.round == expected.round);
    CHECK(std::vector(forest.value.begin() + 400, forest.value.end()) ==
          std::vector(expected.value.begin() + 400, expected.value.end()));
  }
}

// All kinds of constraints on 400 points: every tenth point is in one of two groups, and many are in pairs.
struct SomeConstraints {
  std::vector<std::int32_t> must_link, cannot_link, groups;
  std::vector<double> weights;

  SomeConstraints() {
    std::mt19937 random(3);
    for (std::int32_t i = 0; i < 400; ++i) {
      if (i % 10 == 0) groups.insert(groups.end(), {i, i % 20});
      if (i % 10 == 5) must_link.insert(must_link.end(), {i, i + 1});
      const auto other = static_cast<std::int32_t>(random() % 400);
      if (other / 10 != i / 10) cannot_link.insert(cannot_link.end(), {i, other});
      weights.push_back(1 + i % 3);
    }
  }
  Constraints view(double max_weight) const { return {must_link, cannot_link, groups, max_weight, weights}; }
};

// The roots are the largest clusters, so only they are tested.
TEST_CASE("no cluster violates a constraint") {
  ThreadPool pool(2);
  const Graph graph = random_graph(400, 4, 7, Kind::similarity, pool);
  const SomeConstraints given;
  const Forest forest =
      run_rounds({graph.indptr, graph.indices, graph.weights}, RoundPlan{}, given.view(40), pool);
  const auto top = [&](std::int32_t node) {
    while (forest.parent[node] != -1) node = forest.parent[node];
    return node;
  };
  for (std::size_t k = 0; k < given.cannot_link.size(); k += 2)
    CHECK(top(given.cannot_link[k]) != top(given.cannot_link[k + 1]));
  for (std::size_t k = 0; k < given.must_link.size(); k += 2)
    CHECK(forest.parent[given.must_link[k]] == forest.parent[given.must_link[k + 1]]);
  std::vector<double> weight(forest.parent.size(), 0);
  for (std::int32_t i = 0; i < 400; ++i) weight[top(i)] += given.weights[i];
  for (const double each : weight) CHECK(each <= 40);
  std::vector<int> members(forest.parent.size() * 20, 0);
  for (std::size_t k = 0; k < given.groups.size(); k += 2)
    CHECK(++members[top(given.groups[k]) * 20 + given.groups[k + 1]] == 1);
}

void initial_clusters_of_one_point(Kind kind, Linkage linkage, std::optional<double> missing,
                                   std::size_t limbs) {
  ThreadPool pool(2);
  const Graph graph = random_graph(300, 4, 11, kind, pool);
  const GraphView view{graph.indptr, graph.indices, graph.weights};
  const std::vector<double> sizes(300, 1.0);
  const std::vector<std::int64_t> counts(graph.indices.size(), 1);
  std::vector<std::int64_t> sums;
  RoundPlan plan;
  plan.kind = kind;
  plan.linkage = linkage;
  plan.missing = missing;
  plan.shift = static_cast<int>(64 * limbs) - 34;
  plan.limbs = limbs;
  for (const float weight : graph.weights) {
    // Weights are multiples of 1/8. All their bits are in the highest limb.
    const auto eighths = static_cast<std::int64_t>(weight * (kind == Kind::similarity ? 8 : -8));
    sums.insert(sums.end(), limbs - 1, 0);
    sums.push_back(eighths * (std::int64_t{1} << (plan.shift - 3 - 64 * (static_cast<int>(limbs) - 1))));
  }
  const Forest expected = run_rounds(view, plan, pool);
  const Forest forest = run_rounds(view, InitialClusters{sizes, counts, sums}, plan, pool);
  CHECK(forest.parent == expected.parent);
  CHECK(forest.size == expected.size);
  CHECK(std::vector(forest.value.begin() + 300, forest.value.end()) ==
        std::vector(expected.value.begin() + 300, expected.value.end()));
}

// Sums are rounded only when they are converted to double.
TEST_CASE("sums of powers of two from 2^0 to 2^380 are exact") {
  for (const double sign : {1.0, -1.0})
    for (int high = 60; high <= 380; ++high) {
      Int384 sum(sign * std::ldexp(1.0, high));
      CHECK(static_cast<double>(sum) == sign * std::ldexp(1.0, high));
      sum += Int384(sign * std::ldexp(1.0, high - 53));  // half of the last bit, which rounds to even
      CHECK(static_cast<double>(sum) == sign * std::ldexp(1.0, high));
      sum += Int384(sign * 1.0);  // more than half of the last bit
      CHECK(static_cast<double>(sum) == sign * (std::ldexp(1.0, high) + std::ldexp(1.0, high - 52)));
      sum += Int384(-sign * std::ldexp(1.0, high));
      sum += Int384(-sign * std::ldexp(1.0, high - 53));
      CHECK(static_cast<double>(sum) == sign);
      sum += Int384(-sign * 3.0);
      CHECK(static_cast<double>(sum) == -sign * 2.0);
    }
}

}  // namespace

// Calls body(kind, linkage, missing, limbs) for all graph linkages.
template <class Body>
void for_each_linkage(const Body& body) {
  for (const Kind kind : {Kind::similarity, Kind::distance})
    for (const Linkage linkage : {Linkage::average, Linkage::single, Linkage::complete})
      for (const std::optional<double> missing :
           {std::optional<double>(), std::optional(0.0), std::optional(1.0)})
        for (const std::size_t limbs : {1, 2, 6}) body(kind, linkage, missing, limbs);
}

TEST_CASE("forests of SCC do not depend on the number of threads") {
  for_each_linkage([](Kind kind, Linkage linkage, std::optional<double> missing, std::size_t limbs) {
    threads_do_not_matter(kind, linkage, missing, limbs, limbs > 1, false);
  });
}

TEST_CASE("forests of HAC do not depend on the number of threads") {
  for_each_linkage([](Kind kind, Linkage linkage, std::optional<double> missing, std::size_t limbs) {
    threads_do_not_matter(kind, linkage, missing, limbs, false, true);
  });
}

TEST_CASE("forests with constraints do not depend on the number of threads") {
  const SomeConstraints given;
  for_each_linkage([&](Kind kind, Linkage linkage, std::optional<double> missing, std::size_t limbs) {
    const bool option = limbs > 1;
    threads_do_not_matter(kind, linkage, missing, limbs, option, false, given.view(option ? 40 : 1e9));
  });
}

TEST_CASE("a run from initial clusters of one point each is the run from points") {
  for_each_linkage(initial_clusters_of_one_point);
}

TEST_CASE("points without edges do not merge") {
  ThreadPool pool(2);
  const std::vector<std::int64_t> indptr{0, 0, 0};
  const Forest forest = run_rounds({indptr, {}, {}}, RoundPlan{}, pool);
  CHECK(forest.parent == (std::vector<std::int32_t>{-1, -1}));
  CHECK(forest.rounds.empty());
}

TEST_CASE("HAC ends when a merged pair has no neighbours") {
  const std::vector<std::int64_t> ends{0, 1, 2, 2};
  const std::vector<std::int32_t> other{1, 0};
  const std::vector<float> weights{1, 1};
  ThreadPool one(1);
  RoundPlan mutual;
  mutual.mutual = true;
  mutual.missing = 0.0;
  CHECK(run_rounds({ends, other, weights}, mutual, one).size == (std::vector<std::int32_t>{1, 1, 1, 2}));
}
