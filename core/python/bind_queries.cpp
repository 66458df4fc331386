#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "neighbors/kdtree.hpp"
#include "neighbors/query.hpp"
#include "python.hpp"

namespace agglo::python {
namespace {

template <class T>
nb::tuple nearest_to(const Rows<Bits<T>>& queries, const Rows<Bits<T>>& X, std::int64_t k,
                     const std::string& metric, const nb::capsule& sgemm, int threads,
                     const nb::object& progress) {
  auto* const multiply = sgemm_of(sgemm);
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest_to(points_of<T>(queries), points_of<T>(X), k, metric_of(metric), multiply, pool,
                             report);
  }));
}

template <class T>
nb::tuple nearest_to_by_tree(const Rows<Bits<T>>& queries, const Rows<Bits<T>>& X, std::int64_t k,
                             const std::string& metric, int threads, const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest_to_by_tree(points_of<T>(queries), points_of<T>(X), k, metric_of(metric), pool,
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
  const agglo::Blas blas = blas_of(sgemm, dgemm);
  return released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return std::make_unique<agglo::CellIndex<T>>(
        points_of<T>(X), k, metric_of(metric), recall, agglo::Effort{size, visits, kept, 0}, span(cells),
        std::span(basis.data(), basis.size()), seed, blas, pool, report);
  });
}

template <class T>
nb::object row_hashes(const Rows<Bits<T>>& X, int threads) {
  return out(released(threads, nb::none(), [&](agglo::ThreadPool& pool, const agglo::Report&) {
    return agglo::row_hashes(points_of<T>(X), pool);
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
            return lists(
                released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
                  return index.nearest_to(points_of<T>(queries), pool, report);
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

}  // namespace

void bind_queries(nb::module_& module) {
  bind_dense<float>(module, "CellIndexOfFloat32");
  bind_dense<double>(module, "CellIndexOfFloat64");
  bind_dense<agglo::Half>(module, "CellIndexOfFloat16");
  bind_dense<std::int8_t>(module, "CellIndexOfInt8");
  bind_dense<std::uint8_t>(module, "CellIndexOfUint8");
}

}  // namespace agglo::python
