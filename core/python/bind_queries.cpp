#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "bits.hpp"
#include "kdtree.hpp"
#include "python.hpp"
#include "queries.hpp"
#include "sets.hpp"
#include "sparse.hpp"

namespace agglo::python {
namespace {

template <class Search>
auto released(int threads, const nb::object& progress, const Search& search) {
  nb::gil_scoped_release release;
  agglo::Team team(threads);
  return search(team, reporter(progress));
}

nb::tuple lists(agglo::Neighbors neighbors) {
  return nb::make_tuple(out(std::move(neighbors.indices)), out(std::move(neighbors.values)));
}

template <class T>
nb::tuple nearest_to(const Rows<Bits<T>>& queries, const Rows<Bits<T>>& X, std::int64_t k,
                     const std::string& metric, const nb::capsule& sgemm, int threads,
                     const nb::object& progress) {
  auto* const multiply = reinterpret_cast<agglo::Gemm<float>*>(sgemm.data());
  return lists(released(threads, progress, [&](agglo::Team& team, const agglo::Report& report) {
    return agglo::nearest_to(points_of<T>(queries), points_of<T>(X), k, metric_of(metric), multiply, team,
                             report);
  }));
}

template <class T>
nb::tuple nearest_to_by_tree(const Rows<Bits<T>>& queries, const Rows<Bits<T>>& X, std::int64_t k,
                             const std::string& metric, int threads, const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::Team& team, const agglo::Report& report) {
    return agglo::nearest_to_by_tree(points_of<T>(queries), points_of<T>(X), k, metric_of(metric), team,
                                     report);
  }));
}

template <class T>
std::unique_ptr<agglo::CellIndex<T>> cell_index(const Rows<Bits<T>>& X, std::int64_t k,
                                                const std::string& metric, double recall, std::int64_t size,
                                                std::int64_t visits, std::int64_t kept,
                                                const In<std::int32_t>& cells, const Rows<float>& basis,
                                                std::uint64_t seed, const nb::capsule& sgemm,
                                                const nb::capsule& dgemm, int threads,
                                                const nb::object& progress) {
  const agglo::Blas blas{reinterpret_cast<agglo::Gemm<float>*>(sgemm.data()),
                         reinterpret_cast<agglo::Gemm<double>*>(dgemm.data())};
  return released(threads, progress, [&](agglo::Team& team, const agglo::Report& report) {
    return std::make_unique<agglo::CellIndex<T>>(
        points_of<T>(X), k, metric_of(metric), recall, agglo::Effort{size, visits, kept, 0}, span(cells),
        std::span(basis.data(), basis.size()), seed, blas, team, report);
  });
}

template <class T>
nb::object row_hashes(const Rows<Bits<T>>& X, int threads) {
  return out(released(threads, nb::none(), [&](agglo::Team& team, const agglo::Report&) {
    return agglo::row_hashes(points_of<T>(X), team);
  }));
}

template <class T>
void bind_dense(nb::module_& module, const char* name) {
  module.def("nearest_to", &nearest_to<T>, "queries"_a.noconvert(), "X"_a.noconvert(), "k"_a, "metric"_a,
             "sgemm"_a, "threads"_a, "progress"_a.none());
  module.def("nearest_to_by_tree", &nearest_to_by_tree<T>, "queries"_a.noconvert(), "X"_a.noconvert(), "k"_a,
             "metric"_a, "threads"_a, "progress"_a.none());
  module.def("row_hashes", &row_hashes<T>, "X"_a.noconvert(), "threads"_a);
  using Index = agglo::CellIndex<T>;
  nb::class_<Index>(module, name)
      .def(
          "nearest_to",
          [](const Index& index, const Rows<Bits<T>>& queries, int threads, const nb::object& progress) {
            return lists(released(threads, progress, [&](agglo::Team& team, const agglo::Report& report) {
              return index.nearest_to(points_of<T>(queries), team, report);
            }));
          },
          "queries"_a.noconvert(), "threads"_a, "progress"_a.none())
      .def_prop_ro("effort", [](const Index& index) {
        return nb::make_tuple(index.effort().size, index.effort().visits, index.effort().kept);
      });
  module.def("cell_index", &cell_index<T>, "X"_a.noconvert(), "k"_a, "metric"_a, "recall"_a, "size"_a,
             "visits"_a, "kept"_a, "cells"_a, "basis"_a, "seed"_a, "sgemm"_a, "dgemm"_a, "threads"_a,
             "progress"_a.none(), nb::keep_alive<0, 1>());
}

template <class T>
nb::tuple sparse_nearest_to(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                            const In<T>& values, std::int64_t columns, std::int64_t base, std::int64_t k,
                            bool cosine, int threads, const nb::object& progress) {
  const agglo::SparseRows<T> rows{span(indptr), span(indices), span(values), columns};
  const auto metric = cosine ? agglo::Metric::cosine : agglo::Metric::dot;
  return lists(released(threads, progress, [&](agglo::Team& team, const agglo::Report& report) {
    return agglo::nearest_to(rows, base, k, metric, team, report);
  }));
}

nb::tuple nearest_sets_to(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                          std::int64_t columns, std::int64_t base, std::int64_t k, int threads,
                          const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::Team& team, const agglo::Report& report) {
    return agglo::nearest_sets_to({span(indptr), span(indices), {}, columns}, base, k, team, report);
  }));
}

nb::tuple nearest_bits_to(const Rows<std::uint64_t>& words, std::int64_t bits, std::int64_t base,
                          std::int64_t k, int threads, const nb::object& progress) {
  const agglo::BitRows rows{{words.data(), words.size()},
                            static_cast<std::int64_t>(words.shape(0)),
                            static_cast<std::int64_t>(words.shape(1)),
                            bits};
  return lists(released(threads, progress, [&](agglo::Team& team, const agglo::Report& report) {
    return agglo::nearest_bits_to(rows, base, k, team, report);
  }));
}

}  // namespace

void bind_queries(nb::module_& module) {
  bind_dense<float>(module, "CellIndexOfFloat32");
  bind_dense<double>(module, "CellIndexOfFloat64");
  bind_dense<agglo::Half>(module, "CellIndexOfFloat16");
  bind_dense<std::int8_t>(module, "CellIndexOfInt8");
  bind_dense<std::uint8_t>(module, "CellIndexOfUint8");
  module.def("sparse_nearest_to", &sparse_nearest_to<float>, "indptr"_a, "indices"_a, "values"_a.noconvert(),
             "columns"_a, "base"_a, "k"_a, "cosine"_a, "threads"_a, "progress"_a.none());
  module.def("sparse_nearest_to", &sparse_nearest_to<double>, "indptr"_a, "indices"_a, "values"_a.noconvert(),
             "columns"_a, "base"_a, "k"_a, "cosine"_a, "threads"_a, "progress"_a.none());
  module.def("nearest_sets_to", &nearest_sets_to, "indptr"_a, "indices"_a, "columns"_a, "base"_a, "k"_a,
             "threads"_a, "progress"_a.none());
  module.def("nearest_bits_to", &nearest_bits_to, "words"_a, "bits"_a, "base"_a, "k"_a, "threads"_a,
             "progress"_a.none());
}

}  // namespace agglo::python
