#include "python.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"
#include "sparse/minhash.hpp"

namespace agglo::python {
namespace {

agglo::Metric metric_of(bool cosine) { return cosine ? agglo::Metric::cosine : agglo::Metric::dot; }

template <class T>
agglo::SparseRows<T> rows_of(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                             const In<T>& values, std::int64_t columns) {
  return {span(indptr), span(indices), span(values), columns};
}

template <class T>
nb::tuple nearest(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<T>& values,
                  std::int64_t columns, std::int64_t k, bool cosine, int threads,
                  const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest(rows_of(indptr, indices, values, columns), k, metric_of(cosine), pool, report);
  }));
}

// Of the rows from `base` on, those before it.
template <class T>
nb::tuple nearest_to(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<T>& values,
                     std::int64_t columns, std::int64_t base, std::int64_t k, bool cosine, int threads,
                     const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest_to(rows_of(indptr, indices, values, columns), base, k, metric_of(cosine), pool,
                             report);
  }));
}

template <class T>
nb::object all_pairs(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<T>& values,
                     std::int64_t columns, bool cosine, int threads, const nb::object& progress) {
  return out(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::all_pairs(rows_of(indptr, indices, values, columns), metric_of(cosine), pool, report);
  }));
}

template <class T>
void bind_products(nb::module_& module) {
  module.def("sparse_nearest", &nearest<T>, "indptr"_a, "indices"_a, "values"_a.noconvert(), "columns"_a,
             "k"_a, "cosine"_a, "threads"_a, "progress"_a.none());
  module.def("sparse_nearest_to", &nearest_to<T>, "indptr"_a, "indices"_a, "values"_a.noconvert(),
             "columns"_a, "base"_a, "k"_a, "cosine"_a, "threads"_a, "progress"_a.none());
  module.def("sparse_all_pairs", &all_pairs<T>, "indptr"_a, "indices"_a, "values"_a.noconvert(), "columns"_a,
             "cosine"_a, "threads"_a, "progress"_a.none());
}

nb::tuple nearest_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, std::int64_t columns,
                       std::int64_t k, int threads, const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest_sets({span(indptr), span(indices), {}, columns}, k, pool, report);
  }));
}

nb::tuple nearest_sets_to(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                          std::int64_t columns, std::int64_t base, std::int64_t k, int threads,
                          const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest_sets_to({span(indptr), span(indices), {}, columns}, base, k, pool, report);
  }));
}

nb::tuple nearly_nearest_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                              std::int64_t columns, std::int64_t k, double recall, std::int64_t bucket,
                              std::int64_t bands, bool patient, std::int64_t most, std::int64_t sample,
                              std::uint64_t seed, int threads, const nb::object& progress) {
  auto found = released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearly_nearest_sets({span(indptr), span(indices), {}, columns}, k, recall,
                                      {bucket, bands, patient}, most, sample, seed, pool, report);
  });
  const auto& [value, error, size] = found.recall;
  return nb::make_tuple(out(std::move(found.neighbors.indices)), out(std::move(found.neighbors.values)),
                        nb::make_tuple(value, error, size),
                        nb::make_tuple(found.effort.bucket, found.effort.bands));
}

nb::object all_pairs_of_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                             std::int64_t columns, int threads, const nb::object& progress) {
  return out(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::all_pairs_of_sets({span(indptr), span(indices), {}, columns}, pool, report);
  }));
}

agglo::BitRows bits_of(const Rows<std::uint64_t>& words, std::int64_t bits) {
  return {{words.data(), words.size()},
          static_cast<std::int64_t>(words.shape(0)),
          static_cast<std::int64_t>(words.shape(1)),
          bits};
}

nb::tuple nearest_bits(const Rows<std::uint64_t>& words, std::int64_t bits, std::int64_t k, int threads,
                       const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest_bits(bits_of(words, bits), k, pool, report);
  }));
}

nb::tuple nearest_bits_to(const Rows<std::uint64_t>& words, std::int64_t bits, std::int64_t base,
                          std::int64_t k, int threads, const nb::object& progress) {
  return lists(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::nearest_bits_to(bits_of(words, bits), base, k, pool, report);
  }));
}

nb::object all_pairs_of_bits(const Rows<std::uint64_t>& words, std::int64_t bits, int threads,
                             const nb::object& progress) {
  return out(released(threads, progress, [&](agglo::ThreadPool& pool, const agglo::Report& report) {
    return agglo::all_pairs_of_bits(bits_of(words, bits), pool, report);
  }));
}

}  // namespace

void bind_sparse(nb::module_& module) {
  bind_products<float>(module);
  bind_products<double>(module);
  module.def("nearest_sets", &nearest_sets, "indptr"_a, "indices"_a, "columns"_a, "k"_a, "threads"_a,
             "progress"_a.none());
  module.def("nearest_sets_to", &nearest_sets_to, "indptr"_a, "indices"_a, "columns"_a, "base"_a, "k"_a,
             "threads"_a, "progress"_a.none());
  module.def("nearly_nearest_sets", &nearly_nearest_sets, "indptr"_a, "indices"_a, "columns"_a, "k"_a,
             "recall"_a, "bucket"_a, "bands"_a, "patient"_a, "most"_a, "sample"_a, "seed"_a, "threads"_a,
             "progress"_a.none());
  module.def("all_pairs_of_sets", &all_pairs_of_sets, "indptr"_a, "indices"_a, "columns"_a, "threads"_a,
             "progress"_a.none());
  module.def("nearest_bits", &nearest_bits, "words"_a, "bits"_a, "k"_a, "threads"_a, "progress"_a.none());
  module.def("nearest_bits_to", &nearest_bits_to, "words"_a, "bits"_a, "base"_a, "k"_a, "threads"_a,
             "progress"_a.none());
  module.def("all_pairs_of_bits", &all_pairs_of_bits, "words"_a, "bits"_a, "threads"_a, "progress"_a.none());
}

}  // namespace agglo::python
