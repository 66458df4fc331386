// Bindings of core/rounds: the rounds of SCC, Affinity and HAC.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python.hpp"
#include "rounds/rounds.hpp"

namespace agglo::python {
namespace {

// Calls run(pool, report), which builds a forest, and returns the columns of the forest.
template <class Run>
nb::tuple to_columns(int n_threads, const nb::object& progress, const Run& run) {
  agglo::Forest forest = without_gil(n_threads, progress, run);
  std::vector<double> threshold, seconds;
  std::vector<std::int64_t> before, after;
  for (const agglo::Round& round : forest.rounds) {
    threshold.push_back(round.threshold);
    before.push_back(round.before);
    after.push_back(round.after);
    seconds.push_back(round.seconds);
  }
  return nb::make_tuple(to_read_only(std::move(forest.parent)), to_read_only(std::move(forest.value)),
                        to_read_only(std::move(forest.size)), to_read_only(std::move(forest.round)),
                        to_read_only(std::move(threshold)), to_read_only(std::move(before)),
                        to_read_only(std::move(after)), to_read_only(std::move(seconds)));
}

agglo::RoundPlan to_plan(bool similarity, const In<double>& thresholds, bool until_stable, bool mutual) {
  agglo::RoundPlan plan;
  plan.kind = to_kind(similarity);
  plan.thresholds = span(thresholds);
  plan.until_stable = until_stable;
  plan.mutual = mutual;
  return plan;
}

nb::tuple run_rounds(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                     const In<float>& weights, bool similarity, const std::string& linkage,
                     std::optional<double> missing, int shift, std::size_t limbs, int count_shift,
                     const In<double>& thresholds, bool until_stable, bool mutual,
                     const In<std::int32_t>& must_link, const In<std::int32_t>& cannot_link,
                     const In<std::int32_t>& groups, double max_weight, const In<double>& point_weights,
                     int n_threads, const nb::object& progress) {
  agglo::RoundPlan plan = to_plan(similarity, thresholds, until_stable, mutual);
  plan.linkage = to_linkage(linkage);
  plan.missing = missing;
  plan.shift = shift;
  plan.limbs = limbs;
  plan.count_shift = count_shift;
  const agglo::Constraints constraints{span(must_link), span(cannot_link), span(groups), max_weight,
                                       span(point_weights)};
  return to_columns(n_threads, progress, [&](auto&... run) {
    return agglo::run_rounds(to_graph(indptr, indices, weights), plan, constraints, run...);
  });
}

// The rounds overwrite `means`, so the caller passes a copy.
nb::tuple run_vector_rounds(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                            const In<float>& weights, bool similarity, const WritableRows<float>& means,
                            const std::string& linkage, const std::string& metric, const In<double>& spreads,
                            const In<double>& thresholds, bool until_stable, bool mutual,
                            const In<std::int32_t>& must_link, const In<std::int32_t>& cannot_link,
                            const In<std::int32_t>& groups, double max_weight,
                            const In<double>& point_weights, int n_threads, const nb::object& progress) {
  const agglo::RoundPlan plan = to_plan(similarity, thresholds, until_stable, mutual);
  const agglo::Constraints constraints{span(must_link), span(cannot_link), span(groups), max_weight,
                                       span(point_weights)};
  agglo::Vectors vectors = to_vectors(means);
  vectors.linkage = to_vector_linkage(linkage);
  vectors.metric = to_metric(metric);
  vectors.weights = span(point_weights);
  vectors.spreads = span(spreads);
  return to_columns(n_threads, progress, [&](auto&... run) {
    return agglo::run_rounds(to_graph(indptr, indices, weights), vectors, plan, constraints, run...);
  });
}

nb::tuple run_cluster_rounds(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                             const In<float>& weights, const In<double>& sizes,
                             const In<std::int64_t>& counts, const In<std::int64_t>& sums, bool similarity,
                             const std::string& linkage, std::optional<double> missing, int shift,
                             std::size_t limbs, const In<double>& thresholds, bool until_stable, bool mutual,
                             int n_threads, const nb::object& progress) {
  agglo::RoundPlan plan = to_plan(similarity, thresholds, until_stable, mutual);
  plan.linkage = to_linkage(linkage);
  plan.missing = missing;
  plan.shift = shift;
  plan.limbs = limbs;
  const agglo::InitialClusters clusters{span(sizes), span(counts), span(sums)};
  return to_columns(n_threads, progress, [&](auto&... run) {
    return agglo::run_rounds(to_graph(indptr, indices, weights), clusters, plan, run...);
  });
}

}  // namespace

void bind_rounds(nb::module_& module) {
  module.def("run_rounds", &run_rounds, "indptr"_a, "indices"_a, "weights"_a, nb::kw_only(), "similarity"_a,
             "linkage"_a, "missing"_a.none(), "shift"_a, "limbs"_a, "count_shift"_a, "thresholds"_a,
             "until_stable"_a, "mutual"_a, "must_link"_a, "cannot_link"_a, "groups"_a, "max_weight"_a,
             "point_weights"_a, "n_threads"_a, "progress"_a.none());
  module.def("run_vector_rounds", &run_vector_rounds, "indptr"_a, "indices"_a, "weights"_a, nb::kw_only(),
             "similarity"_a, "means"_a.noconvert(), "linkage"_a, "metric"_a, "spreads"_a, "thresholds"_a,
             "until_stable"_a, "mutual"_a, "must_link"_a, "cannot_link"_a, "groups"_a, "max_weight"_a,
             "point_weights"_a, "n_threads"_a, "progress"_a.none());
  module.def("run_cluster_rounds", &run_cluster_rounds, "indptr"_a, "indices"_a, "weights"_a, nb::kw_only(),
             "sizes"_a, "counts"_a, "sums"_a, "similarity"_a, "linkage"_a, "missing"_a.none(), "shift"_a,
             "limbs"_a, "thresholds"_a, "until_stable"_a, "mutual"_a, "n_threads"_a, "progress"_a.none());
}

}  // namespace agglo::python
