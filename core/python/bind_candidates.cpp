#include <nanobind/stl/string.h>

#include "neighbors/candidates.hpp"
#include "python.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"

namespace agglo::python {
namespace {

// Candidates come as rows of edges: `starts`, `targets` and `weights`.
template <class Closeness>
nb::tuple select(const In<std::int64_t>& starts, const In<std::int32_t>& targets, const In<float>& weights,
                 std::int64_t k, bool similarity, int threads, const Closeness& closeness) {
  agglo::Neighbors found;
  {
    nb::gil_scoped_release release;
    agglo::ThreadPool pool(threads);
    found = agglo::select_closest({span(starts), span(targets), span(weights)}, k, kind_of(similarity),
                                  closeness(pool), pool);
  }
  return lists(std::move(found));
}

template <class T>
nb::tuple select_closest(const Rows<Bits<T>>& X, const std::string& metric, const In<std::int64_t>& starts,
                         const In<std::int32_t>& targets, const In<float>& weights, std::int64_t k,
                         int threads) {
  const agglo::Metric by = metric_of(metric);
  return select(starts, targets, weights, k, agglo::similarity(by), threads, [&](agglo::ThreadPool& pool) {
    return agglo::PairCloseness([space = agglo::Space<T>(points_of<T>(X), by, pool)](
                                    std::int32_t i, std::int32_t j) { return space.closeness(i, j); });
  });
}

template <class T>
nb::tuple select_closest_sparse(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                                const In<T>& values, std::int64_t columns, bool cosine,
                                const In<std::int64_t>& starts, const In<std::int32_t>& targets,
                                const In<float>& weights, std::int64_t k, int threads) {
  const agglo::SparseRows<T> rows{span(indptr), span(indices), span(values), columns};
  return select(starts, targets, weights, k, true, threads, [&](agglo::ThreadPool&) {
    return agglo::pair_closeness(rows, cosine ? agglo::Metric::cosine : agglo::Metric::dot);
  });
}

nb::tuple select_closest_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                              std::int64_t columns, const In<std::int64_t>& starts,
                              const In<std::int32_t>& targets, const In<float>& weights, std::int64_t k,
                              int threads) {
  const agglo::Sets sets{span(indptr), span(indices), {}, columns};
  return select(starts, targets, weights, k, false, threads,
                [&](agglo::ThreadPool&) { return agglo::pair_closeness_of_sets(sets); });
}

nb::tuple select_closest_bits(const Rows<std::uint64_t>& words, std::int64_t bits,
                              const In<std::int64_t>& starts, const In<std::int32_t>& targets,
                              const In<float>& weights, std::int64_t k, int threads) {
  const agglo::BitRows rows{{words.data(), words.size()},
                            static_cast<std::int64_t>(words.shape(0)),
                            static_cast<std::int64_t>(words.shape(1)),
                            bits};
  return select(starts, targets, weights, k, false, threads,
                [&](agglo::ThreadPool&) { return agglo::pair_closeness_of_bits(rows); });
}

template <class T>
void bind_dense(nb::module_& module) {
  module.def("select_closest", &select_closest<T>, "X"_a.noconvert(), "metric"_a, "starts"_a, "targets"_a,
             "weights"_a, "k"_a, "threads"_a);
}

template <class T>
void bind_sparse(nb::module_& module) {
  module.def("select_closest_sparse", &select_closest_sparse<T>, "indptr"_a, "indices"_a,
             "values"_a.noconvert(), "columns"_a, "cosine"_a, "starts"_a, "targets"_a, "weights"_a, "k"_a,
             "threads"_a);
}

}  // namespace

void bind_candidates(nb::module_& module) {
#define AGGLO_BIND(T) bind_dense<T>(module);
  AGGLO_EACH_NUMBER(AGGLO_BIND)
#undef AGGLO_BIND
  bind_sparse<float>(module);
  bind_sparse<double>(module);
  module.def("select_closest_sets", &select_closest_sets, "indptr"_a, "indices"_a, "columns"_a, "starts"_a,
             "targets"_a, "weights"_a, "k"_a, "threads"_a);
  module.def("select_closest_bits", &select_closest_bits, "words"_a, "bits"_a, "starts"_a, "targets"_a,
             "weights"_a, "k"_a, "threads"_a);
}

}  // namespace agglo::python
