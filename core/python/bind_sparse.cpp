// Bindings of core/sparse: nearest-neighbour searches in sparse rows, sets and bit vectors.
#include "neighbors/candidates.hpp"
#include "python.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"
#include "sparse/minhash.hpp"

namespace agglo::python {
namespace {

Metric to_metric(bool cosine) { return cosine ? Metric::cosine : Metric::dot; }

template <class T>
SparseRows<T> to_rows(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<T>& values,
                      std::int64_t columns) {
  return {span(indptr), span(indices), span(values), columns};
}

template <class T>
nb::tuple search(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<T>& values,
                 std::int64_t columns, std::int64_t k, bool cosine, int n_threads,
                 const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return exact_neighbors(to_rows(indptr, indices, values, columns), k, to_metric(cosine), run...);
  }));
}

// Finds the nearest neighbours of rows >= `base` among the rows < `base`.
template <class T>
nb::tuple query(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<T>& values,
                std::int64_t columns, std::int64_t base, std::int64_t k, bool cosine, int n_threads,
                const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return exact_query(to_rows(indptr, indices, values, columns), base, k, to_metric(cosine), run...);
  }));
}

template <class T>
nb::object compute_all_pairs(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                             const In<T>& values, std::int64_t columns, bool cosine, int n_threads,
                             const nb::object& progress) {
  return to_numpy(without_gil(n_threads, progress, [&](auto&... run) {
    return pairwise_values(to_rows(indptr, indices, values, columns), to_metric(cosine), run...);
  }));
}

nb::tuple search_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, std::int64_t columns,
                      std::int64_t k, int n_threads, const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return jaccard_neighbors({span(indptr), span(indices), {}, columns}, k, run...);
  }));
}

nb::tuple query_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, std::int64_t columns,
                     std::int64_t base, std::int64_t k, int n_threads, const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return jaccard_query({span(indptr), span(indices), {}, columns}, base, k, run...);
  }));
}

nb::tuple search_minhash(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                         std::int64_t columns, std::int64_t k, double recall, std::int64_t bucket_size,
                         std::int64_t n_bands, bool stop_early, std::int64_t max_bands, std::int64_t sample,
                         std::uint64_t seed, int n_threads, const nb::object& progress) {
  auto found = without_gil(n_threads, progress, [&](auto&... run) {
    return minhash_neighbors({span(indptr), span(indices), {}, columns}, k, recall,
                             {bucket_size, n_bands, !stop_early}, max_bands, sample, seed, run...);
  });
  return nb::make_tuple(to_numpy(std::move(found.neighbors.indices)),
                        to_numpy(std::move(found.neighbors.values)), to_tuple(found.recall),
                        nb::make_tuple(found.params.bucket, found.params.bands));
}

nb::object compute_all_pairs_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                                  std::int64_t columns, int n_threads, const nb::object& progress) {
  return to_numpy(without_gil(n_threads, progress, [&](auto&... run) {
    return pairwise_jaccard({span(indptr), span(indices), {}, columns}, run...);
  }));
}

BitRows to_bits(const Rows<std::uint64_t>& words, std::int64_t bits) {
  return {{words.data(), words.size()},
          static_cast<std::int64_t>(words.shape(0)),
          static_cast<std::int64_t>(words.shape(1)),
          bits};
}

nb::tuple search_bits(const Rows<std::uint64_t>& words, std::int64_t bits, std::int64_t k, int n_threads,
                      const nb::object& progress) {
  return to_lists(without_gil(
      n_threads, progress, [&](auto&... run) { return hamming_neighbors(to_bits(words, bits), k, run...); }));
}

nb::tuple query_bits(const Rows<std::uint64_t>& words, std::int64_t bits, std::int64_t base, std::int64_t k,
                     int n_threads, const nb::object& progress) {
  return to_lists(without_gil(n_threads, progress, [&](auto&... run) {
    return hamming_query(to_bits(words, bits), base, k, run...);
  }));
}

nb::object compute_all_pairs_bits(const Rows<std::uint64_t>& words, std::int64_t bits, int n_threads,
                                  const nb::object& progress) {
  return to_numpy(without_gil(n_threads, progress,
                              [&](auto&... run) { return pairwise_hamming(to_bits(words, bits), run...); }));
}

// For every row, selects the k closest of its candidates, which are given as a CSR matrix.
nb::tuple select(const PairSimilarity& similarity, const In<std::int64_t>& starts,
                 const In<std::int32_t>& targets, const In<float>& weights, std::int64_t k, Kind kind,
                 int n_threads) {
  return to_lists(without_gil(n_threads, nb::none(), [&](ThreadPool& pool, const Report&) {
    return select_nearest({span(starts), span(targets), span(weights)}, k, kind, similarity, pool);
  }));
}

template <class T>
nb::tuple select_closest(const In<std::int64_t>& indptr, const In<std::int32_t>& indices, const In<T>& values,
                         std::int64_t columns, bool cosine, const In<std::int64_t>& starts,
                         const In<std::int32_t>& targets, const In<float>& weights, std::int64_t k,
                         int n_threads) {
  return select(pair_similarity(to_rows(indptr, indices, values, columns), to_metric(cosine)), starts,
                targets, weights, k, Kind::similarity, n_threads);
}

nb::tuple select_closest_sets(const In<std::int64_t>& indptr, const In<std::int32_t>& indices,
                              std::int64_t columns, const In<std::int64_t>& starts,
                              const In<std::int32_t>& targets, const In<float>& weights, std::int64_t k,
                              int n_threads) {
  return select(jaccard_similarity({span(indptr), span(indices), {}, columns}), starts, targets, weights, k,
                Kind::distance, n_threads);
}

nb::tuple select_closest_bits(const Rows<std::uint64_t>& words, std::int64_t bits,
                              const In<std::int64_t>& starts, const In<std::int32_t>& targets,
                              const In<float>& weights, std::int64_t k, int n_threads) {
  return select(hamming_similarity(to_bits(words, bits)), starts, targets, weights, k, Kind::distance,
                n_threads);
}

template <class T>
void bind_products(nb::module_& module) {
  module.def("search_sparse", &search<T>, "indptr"_a, "indices"_a, "values"_a.noconvert(), "columns"_a, "k"_a,
             "cosine"_a, "n_threads"_a, "progress"_a.none());
  module.def("query_sparse", &query<T>, "indptr"_a, "indices"_a, "values"_a.noconvert(), "columns"_a,
             "base"_a, "k"_a, "cosine"_a, "n_threads"_a, "progress"_a.none());
  module.def("compute_all_pairs_sparse", &compute_all_pairs<T>, "indptr"_a, "indices"_a,
             "values"_a.noconvert(), "columns"_a, "cosine"_a, "n_threads"_a, "progress"_a.none());
  module.def("select_closest_sparse", &select_closest<T>, "indptr"_a, "indices"_a, "values"_a.noconvert(),
             "columns"_a, "cosine"_a, "starts"_a, "targets"_a, "weights"_a, "k"_a, "n_threads"_a);
}

}  // namespace

void bind_sparse(nb::module_& module) {
  bind_products<float>(module);
  bind_products<double>(module);
  module.def("search_sets", &search_sets, "indptr"_a, "indices"_a, "columns"_a, "k"_a, "n_threads"_a,
             "progress"_a.none());
  module.def("query_sets", &query_sets, "indptr"_a, "indices"_a, "columns"_a, "base"_a, "k"_a, "n_threads"_a,
             "progress"_a.none());
  module.def("search_minhash", &search_minhash, "indptr"_a, "indices"_a, "columns"_a, nb::kw_only(), "k"_a,
             "recall"_a, "bucket_size"_a, "n_bands"_a, "stop_early"_a, "max_bands"_a, "sample"_a, "seed"_a,
             "n_threads"_a, "progress"_a.none());
  module.def("compute_all_pairs_sets", &compute_all_pairs_sets, "indptr"_a, "indices"_a, "columns"_a,
             "n_threads"_a, "progress"_a.none());
  module.def("search_bits", &search_bits, "words"_a, "bits"_a, "k"_a, "n_threads"_a, "progress"_a.none());
  module.def("query_bits", &query_bits, "words"_a, "bits"_a, "base"_a, "k"_a, "n_threads"_a,
             "progress"_a.none());
  module.def("compute_all_pairs_bits", &compute_all_pairs_bits, "words"_a, "bits"_a, "n_threads"_a,
             "progress"_a.none());
  module.def("select_closest_sets", &select_closest_sets, "indptr"_a, "indices"_a, "columns"_a, "starts"_a,
             "targets"_a, "weights"_a, "k"_a, "n_threads"_a);
  module.def("select_closest_bits", &select_closest_bits, "words"_a, "bits"_a, "starts"_a, "targets"_a,
             "weights"_a, "k"_a, "n_threads"_a);
}

}  // namespace agglo::python
