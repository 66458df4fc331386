// Bindings of the k-nearest-neighbour searches of dense points, for all points or for queries.
#include "ivf/ivf.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/query.hpp"
#include "neighbors/recall.hpp"
#include "python.hpp"

namespace agglo {

static auto to_tuple(IvfResult&& found) {
  return std::tuple(std::move(found.neighbors), found.recall, found.params, std::move(found.lists));
}

}  // namespace agglo

namespace agglo::python {
namespace {

// Measures the recall of neighbour lists on a random sample of `sample` points.
Recall measure_recall(const AnyPoints& points, const Points<std::int32_t>& lists, Metric metric,
                      std::int64_t sample, std::uint64_t seed, Gemm<float>* sgemm, ThreadPool& pool) {
  return agglo::measure_recall(points, {lists.data, static_cast<std::size_t>(lists.n * lists.d)}, lists.d,
                               metric, random_sample(points.n, sample, seed), sgemm, pool);
}

// Returns the k nearest of the given candidates of every point.
Neighbors select_closest(const AnyPoints& points, Metric metric, const DirectedView& candidates,
                         std::int64_t k, ThreadPool& pool) {
  const Space space(points, metric, pool);
  return select_nearest(
      candidates, k, is_similarity(metric) ? Kind::similarity : Kind::distance,
      [&](std::int32_t i, std::int32_t j) { return space.similarity(i, j); }, pool);
}

}  // namespace

void bind_neighbors(nb::module_& module) {
  nb::class_<RecallGoal>(module, "RecallGoal")
      .def(nb::init<double, std::int64_t, std::int64_t, bool>(), "recall"_a, nb::kw_only(), "sample"_a,
           "max_attempts"_a, "accept_lower"_a);
  nb::class_<IvfParams>(module, "IvfParams")
      .def(nb::init<std::int64_t, std::int64_t, std::int64_t>(), nb::kw_only(), "list_size"_a, "n_probes"_a,
           "n_candidates"_a)
      .def_ro("list_size", &IvfParams::list_size)
      .def_ro("n_probes", &IvfParams::n_probes)
      .def_ro("n_candidates", &IvfParams::n_candidates)
      .def_ro("n_passes", &IvfParams::n_passes);
  module.def("search_exact", &exact_neighbors, "points"_a.noconvert(), "k"_a, "metric"_a, "basis"_a, "blas"_a,
             "n_threads"_a, "progress"_a.none(), ReleaseGil());
  module.def("search_kdtree", &kdtree_neighbors, "points"_a.noconvert(), "k"_a, "metric"_a, "n_threads"_a,
             "progress"_a.none(), ReleaseGil());
  module.def("search_ivf", &ivf_neighbors, "points"_a.noconvert(), nb::kw_only(), "k"_a, "metric"_a,
             "params"_a, "goal"_a, "basis"_a, "seed"_a, "sgemm"_a, "n_threads"_a, "progress"_a.none(),
             ReleaseGil());
  module.def("query_exact", &exact_query, "queries"_a.noconvert(), "points"_a.noconvert(), "k"_a, "metric"_a,
             "sgemm"_a, "n_threads"_a, "progress"_a.none(), ReleaseGil());
  module.def("query_kdtree", &kdtree_query, "queries"_a.noconvert(), "points"_a.noconvert(), "k"_a,
             "metric"_a, "n_threads"_a, "progress"_a.none(), ReleaseGil());
  nb::class_<IvfIndex>(module, "IvfIndex")
      .def(nb::init<const AnyPoints&, std::int64_t, Metric, const IvfParams&, double,
                    std::span<const std::int32_t>, std::span<const float>, std::uint64_t, Gemm<float>*,
                    ThreadPool&, const Report&>(),
           "points"_a.noconvert(), nb::kw_only(), "k"_a, "metric"_a, "params"_a, "recall"_a, "lists"_a,
           "basis"_a, "seed"_a, "sgemm"_a, "n_threads"_a, "progress"_a.none(), nb::keep_alive<1, 2>(),
           ReleaseGil())
      .def("query", &IvfIndex::query, "queries"_a.noconvert(), "n_threads"_a, "progress"_a.none(),
           ReleaseGil());
  module.def("measure_recall", &measure_recall, "points"_a.noconvert(), "lists"_a, "metric"_a, "sample"_a,
             "seed"_a, "sgemm"_a, "n_threads"_a, ReleaseGil());
  module.def("estimate_recall",
             static_cast<Recall (*)(std::span<const double>, std::int64_t)>(&estimate_recall), "shares"_a,
             "k"_a);
  module.def("compute_all_pairs", &pairwise_values, "points"_a.noconvert(), "metric"_a, "n_threads"_a,
             "progress"_a.none(), ReleaseGil());
  module.def("select_closest", &select_closest, "points"_a.noconvert(), "metric"_a, "candidates"_a, "k"_a,
             "n_threads"_a, ReleaseGil());
  module.def("hash_rows", &hash_rows, "points"_a.noconvert(), "n_threads"_a, ReleaseGil());
}

}  // namespace agglo::python
