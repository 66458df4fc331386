// Bindings of core/sparse: nearest-neighbour searches of sparse rows, sets and rows of bits.
//
// Sparse rows are tuples (indptr, indices, values, n_columns). Rows of bits are tuples (words, n_bits).
// In the functions named query, the first `base` rows are the points. The other rows are the queries.
#include "neighbors/candidates.hpp"
#include "python.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"
#include "sparse/minhash.hpp"

namespace agglo {

static auto to_tuple(MinHashResult&& found) {
  return std::tuple(std::move(found.neighbors), found.recall, found.params);
}

}  // namespace agglo

namespace agglo::python {
namespace {

BitRows to_bits(Points<std::uint64_t> words, std::int64_t bits) {
  return {{words.data, static_cast<std::size_t>(words.n * words.d)}, words.n, words.d, bits};
}

// Returns the k nearest of the given candidates of every row.
template <class T>
Neighbors select_closest_sparse(const SparseRows<T>& rows, Metric metric, const DirectedView& candidates,
                                std::int64_t k, ThreadPool& pool) {
  return select_nearest(candidates, k, Kind::similarity, pair_similarity(rows, metric), pool);
}
Neighbors select_closest_sets(const Sets& sets, const DirectedView& candidates, std::int64_t k,
                              ThreadPool& pool) {
  return select_nearest(candidates, k, Kind::distance, jaccard_similarity(sets), pool);
}
Neighbors select_closest_bits(const BitRows& rows, const DirectedView& candidates, std::int64_t k,
                              ThreadPool& pool) {
  return select_nearest(candidates, k, Kind::distance, hamming_similarity(rows), pool);
}

}  // namespace
}  // namespace agglo::python

namespace nanobind::detail {

template <class T>
struct type_caster<agglo::SparseRows<T>>
    : tuple_argument<&to_view<agglo::SparseRows<T>, std::span<const std::int64_t>,
                              std::span<const std::int32_t>, std::span<const T>, std::int64_t>> {};
template <>
struct type_caster<agglo::BitRows> : tuple_argument<&agglo::python::to_bits> {};

}  // namespace nanobind::detail

namespace agglo::python {
namespace {

template <class T>
void bind_products(nb::module_& module) {
  module.def("search_sparse", &exact_neighbors<T>, "rows"_a.noconvert(), "k"_a, "metric"_a, "n_threads"_a,
             "progress"_a.none(), ReleaseGil());
  module.def("query_sparse", &exact_query<T>, "rows"_a.noconvert(), "base"_a, "k"_a, "metric"_a,
             "n_threads"_a, "progress"_a.none(), ReleaseGil());
  module.def("compute_all_pairs_sparse", &pairwise_values<T>, "rows"_a.noconvert(), "metric"_a, "n_threads"_a,
             "progress"_a.none(), ReleaseGil());
  module.def("select_closest_sparse", &select_closest_sparse<T>, "rows"_a.noconvert(), "metric"_a,
             "candidates"_a, "k"_a, "n_threads"_a, ReleaseGil());
}

}  // namespace

void bind_sparse(nb::module_& module) {
  bind_products<float>(module);
  bind_products<double>(module);

  module.def("search_sets", &jaccard_neighbors, "sets"_a, "k"_a, "n_threads"_a, "progress"_a.none(),
             ReleaseGil());
  module.def("query_sets", &jaccard_query, "sets"_a, "base"_a, "k"_a, "n_threads"_a, "progress"_a.none(),
             ReleaseGil());
  module.def("compute_all_pairs_sets", &pairwise_jaccard, "sets"_a, "n_threads"_a, "progress"_a.none(),
             ReleaseGil());
  module.def("select_closest_sets", &select_closest_sets, "sets"_a, "candidates"_a, "k"_a, "n_threads"_a,
             ReleaseGil());

  nb::class_<MinHashParams>(module, "MinHashParams")
      .def(nb::init<std::int64_t, std::int64_t>(), nb::kw_only(), "bucket_size"_a, "n_bands"_a)
      .def_ro("bucket_size", &MinHashParams::bucket_size)
      .def_ro("n_bands", &MinHashParams::n_bands);
  module.def("search_minhash", &minhash_neighbors, "sets"_a, nb::kw_only(), "k"_a, "params"_a, "goal"_a,
             "seed"_a, "n_threads"_a, "progress"_a.none(), ReleaseGil());

  module.def("search_bits", &hamming_neighbors, "rows"_a, "k"_a, "n_threads"_a, "progress"_a.none(),
             ReleaseGil());
  module.def("query_bits", &hamming_query, "rows"_a, "base"_a, "k"_a, "n_threads"_a, "progress"_a.none(),
             ReleaseGil());
  module.def("compute_all_pairs_bits", &pairwise_hamming, "rows"_a, "n_threads"_a, "progress"_a.none(),
             ReleaseGil());
  module.def("select_closest_bits", &select_closest_bits, "rows"_a, "candidates"_a, "k"_a, "n_threads"_a,
             ReleaseGil());
}

}  // namespace agglo::python
