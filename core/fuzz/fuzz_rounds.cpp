// Fuzzes graph construction and the rounds: all linkages and constraints, with one thread and with two.
#include <array>
#include <optional>

#include "input.hpp"
#include "neighbors/graph.hpp"
#include "rounds/rounds.hpp"

using namespace agglo;

namespace {

bool same(const Forest& a, const Forest& b, std::int64_t n) {
  return a.parent == b.parent && a.size == b.size && a.round == b.round &&
         std::equal(a.value.begin() + n, a.value.end(), b.value.begin() + n, b.value.end());
}

void check_forest(const Forest& forest, std::int64_t n) {
  const auto nodes = static_cast<std::int64_t>(forest.parent.size());
  CHECK(nodes >= n && nodes < 2 * n);
  std::vector<std::int64_t> below(nodes, 0);
  for (std::int64_t v = 0; v < nodes; ++v) {
    if (v < n) below[v] = 1;
    CHECK(below[v] == forest.size[v]);
    const std::int64_t up = forest.parent[v];
    CHECK(up == -1 || (up > v && up >= n && up < nodes && forest.round[up] > forest.round[v]));
    if (up >= 0) below[up] += below[v];
  }
}

// Validation must accept or reject arrays of any content without a crash.
void check_validation(Input& input) {
  const std::int64_t n = input.integer(0, 4), edges = input.integer(0, 6);
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;
  std::vector<float> weights;
  for (std::int64_t i = 0; i < n + 1; ++i) indptr.push_back(input.integer(0, 7) - 1);
  for (std::int64_t e = 0; e < edges; ++e) {
    indices.push_back(static_cast<std::int32_t>(input.integer(0, 6) - 1));
    weights.push_back(input.read<float>());
  }
  find_graph_violation({indptr, indices, weights}, one_thread());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::int64_t n = input.integer(0, 30);
  if (n == 0) {
    check_validation(input);
    return 0;
  }
  const bool both = compare_threads(input);
  RoundPlan plan;
  plan.kind = input.integer(0, 1) ? Kind::similarity : Kind::distance;
  plan.until_stable = input.integer(0, 1);
  plan.mutual = input.integer(0, 3) == 0;
  const std::int64_t precision = input.integer(0, 2);
  plan.limbs = std::array<std::size_t, 3>{1, 2, 6}[precision];
  plan.shift = std::array{20, 60, 150}[precision];
  std::vector<double> thresholds;
  double threshold = input.real<float>(100);
  const std::int64_t steps = input.integer(0, 6);
  for (std::int64_t i = 0; i < steps && !plan.mutual; ++i) {
    thresholds.push_back(threshold);
    threshold += (plan.kind == Kind::distance ? 1 : -1) * static_cast<double>(input.integer(1, 8)) / 4;
  }
  plan.thresholds = thresholds;
  std::vector<std::int32_t> must_link, cannot_link, groups;
  const auto point = [&] { return static_cast<std::int32_t>(input.integer(0, n - 1)); };
  const auto add_pairs = [&](std::vector<std::int32_t>& pairs, bool points) {
    for (std::int64_t left = input.integer(0, 3); left > 0; --left) {
      const std::int32_t a = point(), b = points ? point() : static_cast<std::int32_t>(input.integer(0, 2));
      if (points && a == b) continue;
      pairs.push_back(a);
      pairs.push_back(b);
    }
  };
  Constraints constraints;
  // Must-link and cannot-link pairs are not combined, because they could contradict each other.
  if (input.integer(0, 1)) {
    if (input.integer(0, 1)) {
      add_pairs(must_link, true);
    } else {
      add_pairs(cannot_link, true);
      add_pairs(groups, false);
      if (input.integer(0, 1)) constraints.max_weight = static_cast<double>(input.integer(1, 12));
    }
    constraints.must_link = must_link;
    constraints.cannot_link = cannot_link;
    constraints.groups = groups;
  }
  std::vector<std::int32_t> sources, targets;
  std::vector<float> weights;
  while (!input.empty() && sources.size() < 200) {
    sources.push_back(point());
    targets.push_back(point());
    weights.push_back(input.real<float>(1000));
  }
  const Graph rows = edges_to_csr(n, sources, targets, weights);
  const Graph graph = symmetrize({rows.indptr, rows.indices, rows.weights}, plan.kind, one_thread());
  if (both) {
    const Graph other = symmetrize({rows.indptr, rows.indices, rows.weights}, plan.kind, two_threads());
    CHECK(std::equal(graph.indices.begin(), graph.indices.end(), other.indices.begin(), other.indices.end()));
    CHECK(std::equal(graph.weights.begin(), graph.weights.end(), other.weights.begin(), other.weights.end()));
  }
  const GraphView view{graph.indptr, graph.indices, graph.weights};
  CHECK(find_graph_violation(view, one_thread()).empty());
  for (const bool up : {false, true})
    for (const double share : {0.0, 0.3, 1.0}) {
      const float found = weight_quantile(view.weights, 1.0, up, share);
      CHECK(std::isnan(found) || (up ? found > 1 : found < 1));
    }
  for (const Linkage linkage : {Linkage::average, Linkage::single, Linkage::complete})
    for (const std::optional<double> missing :
         {std::optional<double>(), std::optional<double>(plan.kind == Kind::similarity ? -2000 : 2000)}) {
      plan.linkage = linkage;
      plan.missing = missing;
      const Forest forest = run_rounds(view, plan, constraints, one_thread());
      check_forest(forest, n);
      if (both) CHECK(same(forest, run_rounds(view, plan, constraints, two_threads()), n));
    }
  return 0;
}
