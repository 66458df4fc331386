// Bindings of nearest-neighbour queries for new points, and of the selection from given candidates.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "neighbors/candidates.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/query.hpp"
#include "python.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"

namespace agglo::python {
namespace {

// ---- queries ----

template <class T>
nb::tuple query_exact(const Rows<Bits<T>>& queries, const Rows<Bits<T>>& X, std::int64_t k,
                      const std::string& metric, const nb::capsule& sgemm, int n_threads,
                      const nb::object& progress) {
  auto* const multiply = to_sgemm(sgemm);
  return to_lists(without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::exact_query(to_points<T>(queries), to_points<T>(X), k, to_metric(metric), multiply, pool,
                              report);
  }));
}

template <class T>
nb::tuple query_kdtree(const Rows<Bits<T>>& queries, const Rows<Bits<T>>& X, std::int64_t k,
                       const std::string& metric, int n_threads, const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::kdtree_query(to_points<T>(queries), to_points<T>(X), k, to_metric(metric), pool, report);
  }));
}

template <class T>
std::unique_ptr<agglo::IvfIndex<T>> build_ivf_index(const Rows<Bits<T>>& X, std::int64_t k,
                                                    const std::string& metric, double recall,
                                                    std::int64_t list_size, std::int64_t n_probes,
                                                    std::int64_t n_candidates, const In<std::int32_t>& cells,
                                                    const Rows<float>& basis, std::uint64_t seed,
                                                    const nb::capsule& sgemm, const nb::capsule& dgemm,
                                                    int n_threads, const nb::object& progress) {
  const agglo::Blas blas = to_blas(sgemm, dgemm);
  return without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return std::make_unique<agglo::IvfIndex<T>>(to_points<T>(X), k, to_metric(metric), recall,
                                                agglo::IvfParams{list_size, n_probes, n_candidates, 0},
                                                span(cells), flatten(basis), seed, blas, pool, report);
  });
}

template <class T>
nb::object hash_rows(const Rows<Bits<T>>& X, int n_threads) {
  return to_numpy(without_gil(n_threads, nb::none(), [&](agglo::ThreadPool& pool, const agglo::Report&) {
    return agglo::hash_rows(to_points<T>(X), pool);
  }));
}

// ---- candidates ----

// For every row, selects the k closest of its candidates. The candidates are given as a CSR matrix.
// make_similarity(pool) returns a function that compares two rows.
template <class MakeSimilarity>
nb::tuple select(const In<std::int64_t>& starts, const In<std::int32_t>& targets, const In<float>& weights,
                 std::int64_t k, bool similarity, int n_threads, const MakeSimilarity& make_similarity) {
  return to_lists(without_gil(n_threads, nb::none(), [&](agglo::ThreadPool& pool, const agglo::Report&) {
    return agglo::select_nearest({span(starts), span(targets), span(weights)}, k, to_kind(similarity),
                                 make_similarity(pool), pool);
  }));
}

template <class T>
nb::tuple select_closest(const Rows<Bits<T>>& X, const std::string& metric, const In<std::int64_t>& starts,
                         const In<std::int32_t>& targets, const In<float>& weights, std::int64_t k,
                         int n_threads) {
  const agglo::Metric by = to_metric(metric);
  return select(
      starts, targets, weights, k, agglo::is_similarity(by), n_threads, [&](agglo::ThreadPool& pool) {
        return agglo::PairSimilarity([space = agglo::Space<T>(to_points<T>(X), by, pool)](
                                         std::int32_t i, std::int32_t j) { return space.similarity(i, j); });
      });
}

template <class T>
nb::tuple select_closest_sparse(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                                const In<T>& values, std::int64_t columns, bool cosine,
                                const In<std::int64_t>& starts, const In<std::int32_t>& targets,
                                const In<float>& weights, std::int64_t k, int n_threads) {
  const agglo::SparseRows<T> rows{span(indptr), span(indices), span(values), columns};
  return select(starts, targets, weights, k, true, n_threads, [&](agglo::ThreadPool&) {
    return agglo::pair_similarity(rows, cosine ? agglo::Metric::cosine : agglo::Metric::dot);
  });
}

nb::tuple select_closest_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                              std::int64_t columns, const In<std::int64_t>& starts,
                              const In<std::int32_t>& targets, const In<float>& weights, std::int64_t k,
                              int n_threads) {
  const agglo::Sets sets{span(indptr), span(indices), {}, columns};
  return select(starts, targets, weights, k, false, n_threads,
                [&](agglo::ThreadPool&) { return agglo::jaccard_similarity(sets); });
}

nb::tuple select_closest_bits(const Rows<std::uint64_t>& words, std::int64_t bits,
                              const In<std::int64_t>& starts, const In<std::int32_t>& targets,
                              const In<float>& weights, std::int64_t k, int n_threads) {
  const agglo::BitRows rows{{words.data(), words.size()},
                            static_cast<std::int64_t>(words.shape(0)),
                            static_cast<std::int64_t>(words.shape(1)),
                            bits};
  return select(starts, targets, weights, k, false, n_threads,
                [&](agglo::ThreadPool&) { return agglo::hamming_similarity(rows); });
}

template <class T>
void bind_dense(nb::module_& module, const char* index_name) {
  module.def("query_exact", &query_exact<T>, "queries"_a.noconvert(), "X"_a.noconvert(), "k"_a, "metric"_a,
             "sgemm"_a, "n_threads"_a, "progress"_a.none());
  module.def("query_kdtree", &query_kdtree<T>, "queries"_a.noconvert(), "X"_a.noconvert(), "k"_a, "metric"_a,
             "n_threads"_a, "progress"_a.none());
  module.def("hash_rows", &hash_rows<T>, "X"_a.noconvert(), "n_threads"_a);
  using Index = agglo::IvfIndex<T>;
  nb::class_<Index>(module, index_name)
      .def(
          "query",
          [](const Index& index, const Rows<Bits<T>>& queries, int n_threads, const nb::object& progress) {
            return to_lists(
                without_gil(n_threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
                  return index.query(to_points<T>(queries), pool, report);
                }));
          },
          "queries"_a.noconvert(), "n_threads"_a, "progress"_a.none())
      .def_prop_ro("effort", [](const Index& index) {
        return nb::make_tuple(index.params().list_size, index.params().n_probes, index.params().n_candidates);
      });
  module.def("build_ivf_index", &build_ivf_index<T>, "X"_a.noconvert(), nb::kw_only(), "k"_a, "metric"_a,
             "recall"_a, "list_size"_a, "n_probes"_a, "n_candidates"_a, "cells"_a, "basis"_a, "seed"_a,
             "sgemm"_a, "dgemm"_a, "n_threads"_a, "progress"_a.none(), nb::keep_alive<0, 1>());
  module.def("select_closest", &select_closest<T>, "X"_a.noconvert(), "metric"_a, "starts"_a, "targets"_a,
             "weights"_a, "k"_a, "n_threads"_a);
}

template <class T>
void bind_sparse_candidates(nb::module_& module) {
  module.def("select_closest_sparse", &select_closest_sparse<T>, "indptr"_a, "indices"_a,
             "values"_a.noconvert(), "columns"_a, "cosine"_a, "starts"_a, "targets"_a, "weights"_a, "k"_a,
             "n_threads"_a);
}

}  // namespace

void bind_queries(nb::module_& module) {
  bind_dense<float>(module, "IvfIndexFloat32");
  bind_dense<double>(module, "IvfIndexFloat64");
  bind_dense<agglo::Half>(module, "IvfIndexFloat16");
  bind_dense<std::int8_t>(module, "IvfIndexInt8");
  bind_dense<std::uint8_t>(module, "IvfIndexUint8");
  bind_sparse_candidates<float>(module);
  bind_sparse_candidates<double>(module);
  module.def("select_closest_sets", &select_closest_sets, "indptr"_a, "indices"_a, "columns"_a, "starts"_a,
             "targets"_a, "weights"_a, "k"_a, "n_threads"_a);
  module.def("select_closest_bits", &select_closest_bits, "words"_a, "bits"_a, "starts"_a, "targets"_a,
             "weights"_a, "k"_a, "n_threads"_a);
}

}  // namespace agglo::python
