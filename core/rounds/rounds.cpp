#include "rounds/rounds.hpp"

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "rounds/eager_neighbors.hpp"
#include "rounds/engine.hpp"
#include "rounds/lazy_neighbors.hpp"
#include "rounds/linkage.hpp"

namespace agglo {
namespace {

void check_size(const GraphView& graph) {
  if (graph.size() > std::numeric_limits<Id>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be clustered, got " + std::to_string(graph.size()));
}

// Copies the sizes of the initial clusters, and the statistics of the edges between them, to `neighbors`.
template <class Linkage>
void set_initial_clusters(LazyNeighbors<Linkage, double>& neighbors, const GraphView& graph,
                          const InitialClusters& clusters, const Linkage& linkage, std::size_t limbs) {
  std::vector<typename Linkage::Stat> stats;
  for (Id i = 0; i < graph.size(); ++i) {
    stats.clear();
    for (std::int64_t k = graph.indptr[i]; k < graph.indptr[i + 1]; ++k) {
      const auto sum = clusters.sums.empty() ? clusters.sums : clusters.sums.subspan(k * limbs, limbs);
      stats.push_back(linkage.stat(CombinedEdges{clusters.counts[k], sum, graph.weights[k]}));
    }
    neighbors.set_initial_cluster(i, clusters.sizes[i], stats);
  }
}

std::unique_ptr<ConstraintTracker> make_tracker(const GraphView& graph, const Constraints& constraints) {
  if (!constraints.forbid_merges()) return nullptr;
  return std::make_unique<ConstraintTracker>(graph.size(), constraints);
}

}  // namespace

Forest run_rounds(const GraphView& graph, const RoundPlan& plan, const Constraints& constraints,
                  ThreadPool& pool, const Report& report) {
  check_size(graph);
  const auto tracker = make_tracker(graph, constraints);
  const auto run = [&]<class Size>(ClusterNeighbors<Size>&& neighbors) {
    return Engine<ClusterNeighbors<Size>>(graph.size(), neighbors, plan, constraints.must_link, tracker.get(),
                                          pool, report)
        .run();
  };
  return with_linkage(plan, [&]<class Linkage>(const Linkage& linkage) {
    if constexpr (UsesPointWeights<Linkage>)
      if (!constraints.weights.empty())
        return run.template operator()<double>(
            LazyNeighbors<Linkage, double>(graph, constraints.weights, linkage, tracker.get(), pool.size()));
    return run.template operator()<Id>(
        LazyNeighbors<Linkage, Id>(graph, {}, linkage, tracker.get(), pool.size()));
  });
}

Forest run_rounds(const GraphView& graph, const Vectors& vectors, const RoundPlan& plan,
                  const Constraints& constraints, ThreadPool& pool, const Report& report) {
  check_size(graph);
  const auto tracker = make_tracker(graph, constraints);
  EagerNeighbors neighbors(graph, vectors, tracker.get(), pool.size());
  return Engine(graph.size(), neighbors, plan, constraints.must_link, tracker.get(), pool, report).run();
}

Forest run_rounds(const GraphView& graph, const InitialClusters& clusters, const RoundPlan& plan,
                  ThreadPool& pool, const Report& report) {
  check_size(graph);
  return with_linkage(plan, [&]<class Linkage>(const Linkage& linkage) {
    LazyNeighbors<Linkage, double> neighbors(graph, {}, linkage, nullptr, pool.size());
    set_initial_clusters(neighbors, graph, clusters, linkage, plan.limbs);
    return Engine<ClusterNeighbors<double>>(graph.size(), neighbors, plan, {}, nullptr, pool, report).run();
  });
}

}  // namespace agglo
