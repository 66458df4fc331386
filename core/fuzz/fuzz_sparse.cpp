// Fuzzes the searches of sparse rows, sets and bits against dense searches of the same rows.
#include "../tests/blas.hpp"
#include "input.hpp"
#include "neighbors/exact.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"
#include "sparse/minhash.hpp"

using namespace agglo;

namespace {

bool same(const Neighbors& a, const Neighbors& b) { return a.indices == b.indices && a.values == b.values; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::int64_t n = input.integer(2, 30), columns = input.integer(1, 40), k = input.integer(1, n - 1);
  const bool both = compare_threads(input);
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> indices;
  std::vector<float> values, dense(n * columns, 0.0f);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = input.integer(0, columns); c < columns; c += input.integer(1, columns)) {
      const auto value = input.real<float>(1e18);
      indices.push_back(static_cast<std::int32_t>(c));
      values.push_back(value);
      dense[i * columns + c] = value;
    }
    indptr.push_back(static_cast<std::int64_t>(indices.size()));
  }
  const SparseRows<float> rows{indptr, indices, values, columns};
  for (const Metric metric : {Metric::dot, Metric::cosine}) {
    const Neighbors found = exact_neighbors(rows, k, metric, one_thread());
    if (both) CHECK(same(found, exact_neighbors(rows, k, metric, two_threads())));
    // Neighbours must equal those of the dense search. Sparse lists end where similarities become 0.
    const Neighbors full =
        exact_neighbors(Points<float>{dense.data(), n, columns}, k, metric, {}, blas, one_thread());
    for (std::size_t s = 0; s < full.values.size(); ++s) {
      if (found.indices[s] < 0) continue;
      CHECK(found.indices[s] == full.indices[s] && found.values[s] == full.values[s]);
    }
  }
  const Sets sets{indptr, indices, {}, columns};
  const Neighbors overlaps = jaccard_neighbors(sets, k, one_thread());
  if (both) CHECK(same(overlaps, jaccard_neighbors(sets, k, two_threads())));
  const auto nearly = minhash_neighbors(sets, k, {0, 2}, {0.9, 4, 4}, 1, one_thread());
  if (both)
    CHECK(
        same(nearly.neighbors, minhash_neighbors(sets, k, {0, 2}, {0.9, 4, 4}, 1, two_threads()).neighbors));

  const std::int64_t width = input.integer(1, 5);
  std::vector<std::uint64_t> words(n * width);
  for (std::uint64_t& word : words) word = input.read<std::uint64_t>();
  const BitRows bits{words, n, width, 64 * width};
  const Neighbors closest = hamming_neighbors(bits, k, one_thread());
  if (both) CHECK(same(closest, hamming_neighbors(bits, k, two_threads())));
  return 0;
}
