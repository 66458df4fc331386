// Bindings of the k-nearest-neighbour searches in dense points, of their queries, and of the IVF index.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "ivf/ivf.hpp"
#include "neighbors/candidates.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/query.hpp"
#include "neighbors/recall.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

nb::tuple search_exact(const AnyRows& X, std::int64_t k, const std::string& metric, const Rows<double>& basis,
                       const nb::capsule& sgemm, const nb::capsule& dgemm, int n_threads,
                       const nb::object& progress) {
  const Blas blas = to_blas(sgemm, dgemm);
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return exact_neighbors(to_points(X), k, to_metric(metric), flatten(basis), blas, run...);
  }));
}

nb::tuple search_ivf(const AnyRows& X, std::int64_t k, const std::string& metric, double recall,
                     std::int64_t list_size, std::int64_t n_probes, std::int64_t n_candidates,
                     const Rows<float>& basis, std::int64_t sample, std::int64_t max_attempts,
                     bool stop_early, std::uint64_t seed, const nb::capsule& sgemm, int n_threads,
                     const nb::object& progress) {
  auto* const multiply = to_sgemm(sgemm);
  auto found = without_gil(n_threads, progress, [&](auto&... run) {
    return ivf_neighbors(to_points(X), k, to_metric(metric), recall, {list_size, n_probes, n_candidates, 0},
                         flatten(basis), sample, max_attempts, !stop_early, seed, multiply, run...);
  });
  const IvfParams& params = found.params;
  return nb::make_tuple(
      to_numpy(std::move(found.neighbors.indices)), to_numpy(std::move(found.neighbors.values)),
      to_tuple(found.recall),
      nb::make_tuple(params.list_size, params.n_probes, params.n_candidates, params.n_passes),
      to_numpy(std::move(found.lists)));
}

nb::tuple search_kdtree(const AnyRows& X, std::int64_t k, const std::string& metric, int n_threads,
                        const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return kdtree_neighbors(to_points(X), k, to_metric(metric), run...);
  }));
}

nb::tuple query_exact(const AnyRows& queries, const AnyRows& X, std::int64_t k, const std::string& metric,
                      const nb::capsule& sgemm, int n_threads, const nb::object& progress) {
  auto* const multiply = to_sgemm(sgemm);
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return exact_query(to_points(queries), to_points(X), k, to_metric(metric), multiply, run...);
  }));
}

nb::tuple query_kdtree(const AnyRows& queries, const AnyRows& X, std::int64_t k, const std::string& metric,
                       int n_threads, const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return kdtree_query(to_points(queries), to_points(X), k, to_metric(metric), run...);
  }));
}

std::unique_ptr<IvfIndex> build_ivf_index(const AnyRows& X, std::int64_t k, const std::string& metric,
                                          double recall, std::int64_t list_size, std::int64_t n_probes,
                                          std::int64_t n_candidates, const In<std::int32_t>& cells,
                                          const Rows<float>& basis, std::uint64_t seed,
                                          const nb::capsule& sgemm, int n_threads,
                                          const nb::object& progress) {
  auto* const multiply = to_sgemm(sgemm);
  return without_gil(n_threads, progress, [&](auto&... run) {
    return std::make_unique<IvfIndex>(to_points(X), k, to_metric(metric), recall,
                                      IvfParams{list_size, n_probes, n_candidates, 0}, span(cells),
                                      flatten(basis), seed, multiply, run...);
  });
}

nb::tuple query_ivf_index(const IvfIndex& index, const AnyRows& queries, int n_threads,
                          const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress,
                              [&](auto&... run) { return index.query(to_points(queries), run...); }));
}

// Measures the recall of neighbour lists on a sample.
nb::tuple measure_recall(const AnyRows& X, const Rows<std::int32_t>& lists, const std::string& metric,
                         std::int64_t sample, std::uint64_t seed, const nb::capsule& sgemm, int n_threads) {
  const auto k = static_cast<std::int64_t>(lists.shape(1));
  auto* const multiply = to_sgemm(sgemm);
  return to_tuple(without_gil(n_threads, nb::none(), [&](auto&... run) {
    const AnyPoints points = to_points(X);
    return agglo::measure_recall(points, flatten(lists), k, to_metric(metric),
                                 random_sample(points.n, sample, seed), multiply, run...);
  }));
}

nb::object compute_all_pairs(const AnyRows& X, const std::string& metric, int n_threads,
                             const nb::object& progress) {
  return to_numpy(without_gil(n_threads, progress, [&](auto&... run) {
    return pairwise_values(to_points(X), to_metric(metric), run...);
  }));
}

// For every point, selects the k closest of its candidates, which are given as a CSR matrix.
nb::tuple select_closest(const AnyRows& X, const std::string& metric, const In<std::int64_t>& starts,
                         const In<std::int32_t>& targets, const In<float>& weights, std::int64_t k,
                         int n_threads) {
  return to_lists(without_gil(n_threads, nb::none(), [&](ThreadPool& pool, const Report&) {
    const Space space(to_points(X), to_metric(metric), pool);
    return select_nearest(
        {span(starts), span(targets), span(weights)}, k,
        is_similarity(space.metric()) ? Kind::similarity : Kind::distance,
        [&](std::int32_t i, std::int32_t j) { return space.similarity(i, j); }, pool);
  }));
}

nb::object hash_rows(const AnyRows& X, int n_threads) {
  return to_numpy(without_gil(n_threads, nb::none(), [&](ThreadPool& pool, const Report&) {
    return agglo::hash_rows(to_points(X), pool);
  }));
}

}  // namespace

void bind_neighbors(nb::module_& module) {
  module.def("search_exact", &search_exact, "X"_a.noconvert(), "k"_a, "metric"_a, "basis"_a, "sgemm"_a,
             "dgemm"_a, "n_threads"_a, "progress"_a.none());
  module.def("search_ivf", &search_ivf, "X"_a.noconvert(), nb::kw_only(), "k"_a, "metric"_a, "recall"_a,
             "list_size"_a, "n_probes"_a, "n_candidates"_a, "basis"_a, "sample"_a, "max_attempts"_a,
             "stop_early"_a, "seed"_a, "sgemm"_a, "n_threads"_a, "progress"_a.none());
  module.def("search_kdtree", &search_kdtree, "X"_a.noconvert(), "k"_a, "metric"_a, "n_threads"_a,
             "progress"_a.none());
  module.def("query_exact", &query_exact, "queries"_a.noconvert(), "X"_a.noconvert(), "k"_a, "metric"_a,
             "sgemm"_a, "n_threads"_a, "progress"_a.none());
  module.def("query_kdtree", &query_kdtree, "queries"_a.noconvert(), "X"_a.noconvert(), "k"_a, "metric"_a,
             "n_threads"_a, "progress"_a.none());
  nb::class_<IvfIndex>(module, "IvfIndex")
      .def("query", &query_ivf_index, "queries"_a.noconvert(), "n_threads"_a, "progress"_a.none())
      .def_prop_ro("effort", [](const IvfIndex& index) {
        return nb::make_tuple(index.params().list_size, index.params().n_probes, index.params().n_candidates);
      });
  module.def("build_ivf_index", &build_ivf_index, "X"_a.noconvert(), nb::kw_only(), "k"_a, "metric"_a,
             "recall"_a, "list_size"_a, "n_probes"_a, "n_candidates"_a, "cells"_a, "basis"_a, "seed"_a,
             "sgemm"_a, "n_threads"_a, "progress"_a.none(), nb::keep_alive<0, 1>());
  module.def("measure_recall", &measure_recall, "X"_a.noconvert(), "lists"_a, "metric"_a, "sample"_a,
             "seed"_a, "sgemm"_a, "n_threads"_a);
  module.def(
      "estimate_recall",
      [](const In<double>& shares, std::int64_t k) { return to_tuple(estimate_recall(span(shares), k)); },
      "shares"_a, "k"_a);
  module.def("compute_all_pairs", &compute_all_pairs, "X"_a.noconvert(), "metric"_a, "n_threads"_a,
             "progress"_a.none());
  module.def("select_closest", &select_closest, "X"_a.noconvert(), "metric"_a, "starts"_a, "targets"_a,
             "weights"_a, "k"_a, "n_threads"_a);
  module.def("hash_rows", &hash_rows, "X"_a.noconvert(), "n_threads"_a);
}

}  // namespace agglo::python
