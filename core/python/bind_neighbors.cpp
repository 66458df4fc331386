// Bindings of the k-nearest-neighbour searches in dense matrices.
#include <nanobind/stl/string.h>

#include "ivf/ivf.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/recall.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

nb::tuple to_tuple(const agglo::Recall& recall) {
  return nb::make_tuple(recall.value, recall.error, recall.sample);
}

template <class T>
nb::tuple search_exact(const Rows<Bits<T>>& X, std::int64_t k, const std::string& metric,
                       const Rows<double>& basis, const nb::capsule& sgemm, const nb::capsule& dgemm,
                       int n_threads, const nb::object& progress) {
  const agglo::Blas blas = to_blas(sgemm, dgemm);
  return to_lists(without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::exact_neighbors(to_points<T>(X), k, to_metric(metric), flatten(basis), blas, pool, report);
  }));
}

template <class T>
nb::tuple search_ivf(const Rows<Bits<T>>& X, std::int64_t k, const std::string& metric, double recall,
                     std::int64_t list_size, std::int64_t n_probes, std::int64_t n_candidates,
                     const Rows<float>& basis, std::int64_t sample, std::int64_t max_attempts,
                     bool stop_early, std::uint64_t seed, const nb::capsule& sgemm, const nb::capsule& dgemm,
                     int n_threads, const nb::object& progress) {
  const agglo::Blas blas = to_blas(sgemm, dgemm);
  auto found = without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::ivf_neighbors(to_points<T>(X), k, to_metric(metric), recall,
                                {list_size, n_probes, n_candidates, 0}, flatten(basis), sample, max_attempts,
                                !stop_early, seed, blas, pool, report);
  });
  const agglo::IvfParams& effort = found.params;
  return nb::make_tuple(
      to_numpy(std::move(found.neighbors.indices)), to_numpy(std::move(found.neighbors.values)),
      to_tuple(found.recall),
      nb::make_tuple(effort.list_size, effort.n_probes, effort.n_candidates, effort.n_passes),
      to_numpy(std::move(found.lists)));
}

template <class T>
nb::tuple search_kdtree(const Rows<Bits<T>>& X, std::int64_t k, const std::string& metric, int n_threads,
                        const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::kdtree_neighbors(to_points<T>(X), k, to_metric(metric), pool, report);
  }));
}

// Recomputes the values of neighbour lists exactly, and estimates the recall of the lists on a sample.
template <class T>
nb::tuple rescore_lists(const Rows<Bits<T>>& X, const Rows<std::int32_t>& lists, std::int64_t k,
                        const std::string& metric, std::int64_t sample, std::uint64_t seed,
                        const nb::capsule& sgemm, int n_threads, const nb::object& progress) {
  const auto width = static_cast<std::int64_t>(lists.shape(1));
  auto* const multiply = to_sgemm(sgemm);
  auto [found,
        recall] = without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    const auto points = to_points<T>(X);
    const auto queries = agglo::random_sample(points.n, sample, seed);
    auto rescored = agglo::rescore_lists(points, flatten(lists), width, k, to_metric(metric), pool, report);
    const auto estimate = agglo::measure_recall(points, rescored.indices, k, to_metric(metric), queries,
                                                multiply, pool, report);
    return std::pair(std::move(rescored), estimate);
  });
  return nb::make_tuple(to_numpy(std::move(found.indices)), to_numpy(std::move(found.values)),
                        to_tuple(recall));
}

nb::tuple estimate_recall(const In<double>& shares, std::int64_t k) {
  return to_tuple(agglo::estimate_recall(span(shares), k));
}

template <class T>
nb::object compute_all_pairs(const Rows<Bits<T>>& X, const std::string& metric, int n_threads,
                             const nb::object& progress) {
  return to_numpy(without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::pairwise_values(to_points<T>(X), to_metric(metric), pool, report);
  }));
}

template <class T>
void bind_search(nb::module_& module) {
  module.def("search_exact", &search_exact<T>, "X"_a.noconvert(), "k"_a, "metric"_a, "basis"_a, "sgemm"_a,
             "dgemm"_a, "n_threads"_a, "progress"_a.none());
  module.def("search_ivf", &search_ivf<T>, "X"_a.noconvert(), nb::kw_only(), "k"_a, "metric"_a, "recall"_a,
             "list_size"_a, "n_probes"_a, "n_candidates"_a, "basis"_a, "sample"_a, "max_attempts"_a,
             "stop_early"_a, "seed"_a, "sgemm"_a, "dgemm"_a, "n_threads"_a, "progress"_a.none());
  module.def("search_kdtree", &search_kdtree<T>, "X"_a.noconvert(), "k"_a, "metric"_a, "n_threads"_a,
             "progress"_a.none());
  module.def("rescore_lists", &rescore_lists<T>, "X"_a.noconvert(), "lists"_a, "k"_a, "metric"_a, "sample"_a,
             "seed"_a, "sgemm"_a, "n_threads"_a, "progress"_a.none());
  module.def("compute_all_pairs", &compute_all_pairs<T>, "X"_a.noconvert(), "metric"_a, "n_threads"_a,
             "progress"_a.none());
}

}  // namespace

void bind_neighbors(nb::module_& module) {
  module.def("estimate_recall", &estimate_recall, "shares"_a, "k"_a);
#define AGGLO_BIND(T) bind_search<T>(module);
  AGGLO_EACH_NUMBER(AGGLO_BIND)
}

}  // namespace agglo::python
