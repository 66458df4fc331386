// Fuzzes the dense searches (exact, k-d tree, IVF) with every number type against brute force.
#include <span>

#include "../tests/blas.hpp"
#include "input.hpp"
#include "ivf/ivf.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/query.hpp"

using namespace agglo;

namespace {

bool same(const Neighbors& a, const Neighbors& b) {
  return a.indices == b.indices &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end());
}

template <class T>
T number(Input& input) {
  if constexpr (std::is_same_v<T, Half>) {
    const auto bits = input.read<std::uint16_t>();
    return {static_cast<std::uint16_t>((bits & 0x7c00) == 0x7c00 ? bits & 0x83ff : bits)};  // finite
  } else if constexpr (std::is_integral_v<T>) {
    return input.read<T>();
  } else {
    return input.real<T>(std::is_same_v<T, float> ? 3e38 : 1e100);
  }
}

template <class T>
void check(Input& input) {
  const std::int64_t n = input.integer(2, 24), d = input.integer(1, 9), k = input.integer(1, n - 1);
  const bool both = compare_threads(input);
  const auto metric = static_cast<Metric>(input.integer(0, 3));
  std::vector<T> numbers(n * d);
  for (T& x : numbers) x = number<T>(input);
  const Points<T> points{numbers.data(), n, d};
  const Neighbors exact = exact_neighbors(points, k, metric, {}, blas, one_thread());
  if (both) CHECK(same(exact, exact_neighbors(points, k, metric, {}, blas, two_threads())));
  CHECK(same(exact, kdtree_neighbors(points, k, metric, one_thread())));
  // Brute force: the first k points by (value, index).
  const std::vector<float> values = pairwise_values(points, metric, one_thread());
  const float sign = is_similarity(metric) ? -1.0f : 1.0f;
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<float> own(values.begin() + i * (n - 1), values.begin() + (i + 1) * (n - 1));
    std::sort(own.begin(), own.end(), [&](float a, float b) { return sign * a < sign * b; });
    CHECK(std::equal(own.begin(), own.begin() + k, exact.values.begin() + i * k));
  }
  const auto cells = ivf_neighbors(points, k, metric, {}, {0.9, 8, 2}, {}, 1, blas.sgemm, one_thread());
  if (both)
    CHECK(
        same(cells.neighbors,
             ivf_neighbors(points, k, metric, {}, {0.9, 8, 2}, {}, 1, blas.sgemm, two_threads()).neighbors));
  const Points<T> queries{numbers.data(), 2, d};
  const Neighbors found = exact_query(queries, points, k, metric, blas.sgemm, one_thread());
  CHECK(same(found, kdtree_query(queries, points, k, metric, one_thread())));
  const IvfIndex index(points, k, metric, {}, 0.9, {}, {}, 1, blas.sgemm, one_thread());
  CHECK(index.query(queries, one_thread()).indices.size() == found.indices.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  switch (input.integer(0, 4)) {
    case 0:
      check<float>(input);
      break;
    case 1:
      check<double>(input);
      break;
    case 2:
      check<Half>(input);
      break;
    case 3:
      check<std::int8_t>(input);
      break;
    default:
      check<std::uint8_t>(input);
  }
  return 0;
}
