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

// Calls `engine` with the linkage that a plan asks for.
template <class Sum, class Run>
Forest with_average(const Plan& plan, const Run& engine) {
  if (!plan.missing)
    return engine(CountedAverageLinkage<Sum, true>(plan.kind, 0, plan.shift, plan.count_shift));
  if (*plan.missing == 0) return engine(AverageLinkage<Sum>(plan.kind, plan.shift));
  return engine(CountedAverageLinkage<Sum, false>(plan.kind, *plan.missing, plan.shift, plan.count_shift));
}

void check_size(const GraphView& graph) {
  if (graph.size() > std::numeric_limits<Id>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be clustered, got " + std::to_string(graph.size()));
}

template <class Run>
Forest with_linkage(const Plan& plan, const Run& engine) {
  switch (plan.linkage) {
    case Linkage::average:
      switch (plan.limbs) {
        case FixedPoint<std::int64_t>::kLimbs:
          return with_average<std::int64_t>(plan, engine);
        case FixedPoint<__int128>::kLimbs:
          return with_average<__int128>(plan, engine);
        case FixedPoint<Int384>::kLimbs:
          return with_average<Int384>(plan, engine);
      }
      throw std::logic_error("no integers of " + std::to_string(plan.limbs) + " limbs");
    case Linkage::single:
      return engine(SingleLinkage(plan.kind));
    case Linkage::complete:
      if (plan.missing) return engine(CompleteLinkage(plan.kind, *plan.missing));
      return engine(PresentCompleteLinkage(plan.kind));
  }
  throw std::logic_error("unknown linkage");
}

// Clusters to start from, with the statistics of the edges between them.
template <class Linkage>
void start(LazyNeighborhoods<Linkage, double>& near, const GraphView& graph, const Clusters& clusters,
           const Linkage& linkage, std::size_t limbs) {
  std::vector<typename Linkage::Stat> stats;
  for (Id i = 0; i < graph.size(); ++i) {
    stats.clear();
    for (std::int64_t k = graph.indptr[i]; k < graph.indptr[i + 1]; ++k) {
      const auto sum = clusters.sums.empty() ? clusters.sums : clusters.sums.subspan(k * limbs, limbs);
      stats.push_back(linkage.of_many({clusters.counts[k], sum, graph.weights[k]}));
    }
    near.start(i, clusters.sizes[i], stats);
  }
}

std::unique_ptr<Limits> limits_of(const GraphView& graph, const Constraints& constraints) {
  return constraints.limit() ? std::make_unique<Limits>(graph.size(), constraints) : nullptr;
}

}  // namespace

Forest run_rounds(const GraphView& graph, const Plan& plan, const Constraints& constraints, ThreadPool& pool,
                  const Report& report) {
  check_size(graph);
  const auto limits = limits_of(graph, constraints);
  const auto run = [&]<class Size>(Neighborhoods<Size>&& near) {
    return Engine<Neighborhoods<Size>>(graph.size(), near, plan, constraints.must, limits.get(), pool, report)
        .run();
  };
  return with_linkage(plan, [&]<class Linkage>(const Linkage& linkage) {
    if constexpr (Weighing<Linkage>)
      if (!constraints.weights.empty())
        return run.template operator()<double>(LazyNeighborhoods<Linkage, double>(
            graph, constraints.weights, linkage, limits.get(), pool.size()));
    return run.template operator()<Id>(
        LazyNeighborhoods<Linkage, Id>(graph, {}, linkage, limits.get(), pool.size()));
  });
}

Forest run_rounds(const GraphView& graph, const Vectors& vectors, const Plan& plan,
                  const Constraints& constraints, ThreadPool& pool, const Report& report) {
  check_size(graph);
  const auto limits = limits_of(graph, constraints);
  EagerNeighborhoods near(graph, {}, vectors, limits.get(), pool.size());
  return Engine(graph.size(), near, plan, constraints.must, limits.get(), pool, report).run();
}

Forest run_rounds(const GraphView& graph, const Clusters& clusters, const Plan& plan, ThreadPool& pool,
                  const Report& report) {
  check_size(graph);
  return with_linkage(plan, [&]<class Linkage>(const Linkage& linkage) {
    LazyNeighborhoods<Linkage, double> near(graph, {}, linkage, nullptr, pool.size());
    start(near, graph, clusters, linkage, plan.limbs);
    return Engine<Neighborhoods<double>>(graph.size(), near, plan, {}, nullptr, pool, report).run();
  });
}

}  // namespace agglo
