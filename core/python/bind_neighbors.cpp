#include <nanobind/stl/string.h>

#include "ivf/ivf.hpp"
#include "neighbors/exact.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/recall.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

template <class T>
nb::tuple nearest(const Rows<Bits<T>>& X, std::int64_t k, const std::string& metric,
                  const Rows<double>& basis, const nb::capsule& sgemm, const nb::capsule& dgemm, int threads,
                  const nb::object& progress) {
  const agglo::Blas blas = blas_of(sgemm, dgemm);
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest(points_of<T>(X), k, metric_of(metric), {basis.data(), basis.size()}, blas, pool,
                          report);
  }));
}

template <class T>
nb::tuple nearly_nearest(const Rows<Bits<T>>& X, std::int64_t k, const std::string& metric, double recall,
                         std::int64_t size, std::int64_t visits, std::int64_t kept, const Rows<float>& basis,
                         std::int64_t sample, std::int64_t patience, bool anyway, std::uint64_t seed,
                         const nb::capsule& sgemm, const nb::capsule& dgemm, int threads,
                         const nb::object& progress) {
  const agglo::Blas blas = blas_of(sgemm, dgemm);
  auto found = released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearly_nearest(points_of<T>(X), k, metric_of(metric), recall, {size, visits, kept, 0},
                                 {basis.data(), basis.size()}, sample, patience, anyway, seed, blas, pool,
                                 report);
  });
  const agglo::Effort& effort = found.effort;
  return nb::make_tuple(out(std::move(found.neighbors.indices)), out(std::move(found.neighbors.values)),
                        nb::make_tuple(found.recall.value, found.recall.error, found.recall.sample),
                        nb::make_tuple(effort.size, effort.visits, effort.kept, effort.rounds),
                        out(std::move(found.cells)));
}

template <class T>
nb::tuple nearest_by_tree(const Rows<Bits<T>>& X, std::int64_t k, const std::string& metric, int threads,
                          const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest_by_tree(points_of<T>(X), k, metric_of(metric), pool, report);
  }));
}

// Lists of another search with exact values, and their recall on a sample.
template <class T>
nb::tuple rescored(const Rows<Bits<T>>& X, const Rows<std::int32_t>& lists, std::int64_t k,
                   const std::string& metric, std::int64_t sample, std::uint64_t seed,
                   const nb::capsule& sgemm, int threads, const nb::object& progress) {
  const auto width = static_cast<std::int64_t>(lists.shape(1));
  auto* const multiply = sgemm_of(sgemm);
  agglo::Neighbors found;
  agglo::Recall recall;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    const auto points = points_of<T>(X);
    const auto chosen = agglo::random_sample(points.n, sample, seed);
    found = agglo::rescored(points, {lists.data(), lists.size()}, width, k, metric_of(metric), pool,
                            reporter(progress));
    recall = agglo::recall_on(points, found.indices, k, metric_of(metric), chosen, multiply, pool,
                              reporter(progress));
  }
  return nb::make_tuple(out(std::move(found.indices)), out(std::move(found.values)),
                        nb::make_tuple(recall.value, recall.error, recall.sample));
}

nb::tuple recall_of(const In<double>& shares, std::int64_t k) {
  const agglo::Recall recall = agglo::recall_of(span(shares), k);
  return nb::make_tuple(recall.value, recall.error, recall.sample);
}

template <class T>
nb::object all_pairs(const Rows<Bits<T>>& X, const std::string& metric, int threads,
                     const nb::object& progress) {
  return out(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::all_pairs(points_of<T>(X), metric_of(metric), pool, report);
  }));
}

template <class T>
void bind_search(nb::module_& module) {
  module.def("nearest", &nearest<T>, "X"_a.noconvert(), "k"_a, "metric"_a, "basis"_a, "sgemm"_a, "dgemm"_a,
             "threads"_a, "progress"_a.none());
  module.def("nearly_nearest", &nearly_nearest<T>, "X"_a.noconvert(), "k"_a, "metric"_a, "recall"_a, "size"_a,
             "visits"_a, "kept"_a, "basis"_a, "sample"_a, "patience"_a, "anyway"_a, "seed"_a, "sgemm"_a,
             "dgemm"_a, "threads"_a, "progress"_a.none());
  module.def("nearest_by_tree", &nearest_by_tree<T>, "X"_a.noconvert(), "k"_a, "metric"_a, "threads"_a,
             "progress"_a.none());
  module.def("rescored", &rescored<T>, "X"_a.noconvert(), "lists"_a, "k"_a, "metric"_a, "sample"_a, "seed"_a,
             "sgemm"_a, "threads"_a, "progress"_a.none());
  module.def("all_pairs", &all_pairs<T>, "X"_a.noconvert(), "metric"_a, "threads"_a, "progress"_a.none());
}

}  // namespace

void bind_neighbors(nb::module_& module) {
  module.def("recall_of", &recall_of, "shares"_a, "k"_a);
#define AGGLO_BIND(T) bind_search<T>(module);
  AGGLO_EACH_NUMBER(AGGLO_BIND)
}

}  // namespace agglo::python
