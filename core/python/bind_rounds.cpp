#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python.hpp"
#include "rounds/rounds.hpp"
#include "vectors.hpp"

namespace agglo::python {
namespace {

agglo::Plan plan_of(bool similarity, const std::string& linkage, std::optional<double> missing, int shift,
                    std::size_t limbs, const In<double>& thresholds, bool until_stable, bool mutual) {
  agglo::Plan plan;
  plan.kind = kind_of(similarity);
  plan.linkage = linkage == "average"  ? agglo::Linkage::average
                 : linkage == "single" ? agglo::Linkage::single
                                       : agglo::Linkage::complete;
  plan.missing = missing;
  plan.shift = shift;
  plan.limbs = limbs;
  plan.thresholds = span(thresholds);
  plan.until_stable = until_stable;
  plan.mutual = mutual;
  return plan;
}

// The columns of the forest that run(pool, report) makes without the interpreter.
template <class Run>
nb::tuple columns(int threads, const nb::object& progress, const Run& run) {
  agglo::Forest forest;
  const agglo::Report report = reporter(progress);
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    forest = run(pool, report);
  }
  std::vector<double> threshold, seconds;
  std::vector<std::int64_t> before, after;
  for (const agglo::Round& round : forest.rounds) {
    threshold.push_back(round.threshold);
    before.push_back(round.before);
    after.push_back(round.after);
    seconds.push_back(round.seconds);
  }
  return nb::make_tuple(read_only_out(std::move(forest.parent)), read_only_out(std::move(forest.value)),
                        read_only_out(std::move(forest.size)), read_only_out(std::move(forest.round)),
                        read_only_out(std::move(threshold)), read_only_out(std::move(before)),
                        read_only_out(std::move(after)), read_only_out(std::move(seconds)));
}

nb::tuple run_rounds(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                     const In<float>& weights, bool similarity, const std::string& linkage,
                     std::optional<double> missing, int shift, std::size_t limbs,
                     const In<double>& thresholds, bool until_stable, bool mutual,
                     const In<std::int32_t>& must, const In<std::int32_t>& cannot,
                     const In<std::int32_t>& groups, double most, const In<double>& point_weights,
                     int count_shift, int threads, const nb::object& progress) {
  agglo::Plan plan = plan_of(similarity, linkage, missing, shift, limbs, thresholds, until_stable, mutual);
  plan.count_shift = count_shift;
  const agglo::Constraints constraints{span(must), span(cannot), span(groups), most, span(point_weights)};
  return columns(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::run_rounds(view(indptr, indices, weights), plan, constraints, pool, report);
  });
}

// `means` is a copy for this call: the rounds write to it.
nb::tuple run_rounds_of_vectors(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                                const In<float>& weights, bool similarity, const Means& means,
                                const std::string& linkage, const std::string& metric,
                                const In<double>& spreads, const In<double>& thresholds, bool until_stable,
                                bool mutual, const In<std::int32_t>& must, const In<std::int32_t>& cannot,
                                const In<std::int32_t>& groups, double most, const In<double>& point_weights,
                                int threads, const nb::object& progress) {
  agglo::Plan plan;
  plan.kind = kind_of(similarity);
  plan.thresholds = span(thresholds);
  plan.until_stable = until_stable;
  plan.mutual = mutual;
  const agglo::Constraints constraints{span(must), span(cannot), span(groups), most, span(point_weights)};
  agglo::Vectors vectors = vectors_of(means);
  vectors.linkage = vector_linkage_of(linkage);
  vectors.metric = metric_of(metric);
  vectors.weights = span(point_weights);
  vectors.spreads = span(spreads);
  return columns(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::run_rounds(view(indptr, indices, weights), vectors, plan, constraints, pool, report);
  });
}

nb::tuple run_rounds_of_clusters(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                                 const In<float>& weights, const In<double>& sizes,
                                 const In<std::int64_t>& counts, const In<std::int64_t>& sums,
                                 bool similarity, const std::string& linkage, std::optional<double> missing,
                                 int shift, std::size_t limbs, const In<double>& thresholds,
                                 bool until_stable, bool mutual, int threads, const nb::object& progress) {
  const agglo::Plan plan =
      plan_of(similarity, linkage, missing, shift, limbs, thresholds, until_stable, mutual);
  const agglo::Clusters clusters{span(sizes), span(counts), span(sums)};
  return columns(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::run_rounds(view(indptr, indices, weights), clusters, plan, pool, report);
  });
}

}  // namespace

void bind_rounds(nb::module_& module) {
  module.def("run_rounds", &run_rounds, "indptr"_a, "indices"_a, "weights"_a, "similarity"_a, "linkage"_a,
             "missing"_a.none(), "shift"_a, "limbs"_a, "thresholds"_a, "until_stable"_a, "mutual"_a, "must"_a,
             "cannot"_a, "groups"_a, "most"_a, "point_weights"_a, "count_shift"_a, "threads"_a,
             "progress"_a.none());
  module.def("run_rounds_of_vectors", &run_rounds_of_vectors, "indptr"_a, "indices"_a, "weights"_a,
             "similarity"_a, "means"_a.noconvert(), "linkage"_a, "metric"_a, "spreads"_a, "thresholds"_a,
             "until_stable"_a, "mutual"_a, "must"_a, "cannot"_a, "groups"_a, "most"_a, "point_weights"_a,
             "threads"_a, "progress"_a.none());
  module.def("run_rounds_of_clusters", &run_rounds_of_clusters, "indptr"_a, "indices"_a, "weights"_a,
             "sizes"_a, "counts"_a, "sums"_a, "similarity"_a, "linkage"_a, "missing"_a.none(), "shift"_a,
             "limbs"_a, "thresholds"_a, "until_stable"_a, "mutual"_a, "threads"_a, "progress"_a.none());
}

}  // namespace agglo::python
