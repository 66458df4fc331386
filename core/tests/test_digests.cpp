// Digests of the results of the core on generated data.
// They must be the same on every processor, at every SIMD level and with every BLAS.
// If a change alters a result on purpose, replace the digests by the printed digests.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/elementary.hpp"
#include "blas.hpp"
#include "ivf/ivf.hpp"
#include "neighbors/kdtree.hpp"
#include "neighbors/query.hpp"
#include "paper/dp_seeds.hpp"
#include "paper/dpmeans.hpp"
#include "points/projection.hpp"
#include "rounds/rounds.hpp"
#include "simd/dispatch.hpp"
#include "simd/product.hpp"
#include "sparse/cosine.hpp"
#include "sparse/hamming.hpp"
#include "sparse/jaccard.hpp"
#include "sparse/minhash.hpp"
#include "test_case.hpp"

using namespace agglo;
using namespace agglo::paper;

namespace {

// A matrix product that sums from the last term to the first. Results must not depend on this order.
template <class Real>
void reversed_gemm(char*, char*, int* m, int* n, int* k, Real*, Real* a, int* lda, Real* b, int* ldb, Real*,
                   Real* c, int* ldc) {
  for (std::int64_t j = 0; j < *n; ++j)
    for (std::int64_t i = 0; i < *m; ++i) {
      Real sum = 0;
      for (std::int64_t l = *k - 1; l >= 0; --l) sum += a[i * *lda + l] * b[j * *ldb + l];
      c[j * *ldc + i] = sum;
    }
}
constexpr Blas reversed_blas{reversed_gemm<float>, reversed_gemm<double>};

class Digest {  // FNV-1a
 public:
  template <class Values>
  Digest& add(const Values& values) {
    for (const auto& value : values) {
      unsigned char bytes[sizeof value];
      std::memcpy(bytes, &value, sizeof value);
      for (const unsigned char byte : bytes) state_ = (state_ ^ byte) * 0x100000001b3u;
    }
    return *this;
  }
  Digest& add(const Neighbors& lists) { return add(lists.indices).add(lists.values); }
  Digest& add(const Forest& forest) {
    add(forest.parent).add(forest.size).add(forest.round);
    return add(std::span(forest.value).subspan(std::count(forest.round.begin(), forest.round.end(), 0)));
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

class Random {  // splitmix64
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

template <class T>
T number(double x);  // converts x in [-1, 1]
template <>
float number(double x) {
  return static_cast<float>(x);
}
template <>
double number(double x) {
  return x;
}
template <>
Half number(double x) {
  return {static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | (0x3000 + static_cast<int>(4095 * std::abs(x))))};
}
template <>
std::int8_t number(double x) {
  return static_cast<std::int8_t>(127 * x);
}
template <>
std::uint8_t number(double x) {
  return static_cast<std::uint8_t>(127 * (1 + x));
}

// Returns random points around some centers, with some duplicates.
template <class T>
std::vector<T> some_points(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  Random random(seed);
  constexpr std::int64_t groups = 12;
  std::vector<double> centers(groups * d);
  for (double& x : centers) x = 1.4 * random.uniform() - 0.7;
  std::vector<T> points;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % 40 == 39) {
      for (std::int64_t j = 0; j < d; ++j) points.push_back(points[(i - 7) * d + j]);
      continue;
    }
    const auto group = static_cast<std::int64_t>(random.next() % groups);
    for (std::int64_t j = 0; j < d; ++j)
      points.push_back(number<T>(centers[group * d + j] + 0.6 * (random.uniform() - 0.5)));
  }
  return points;
}

template <class T>
void add_searches(const Blas& gemms, ThreadPool& pool, Digest& digest) {
  constexpr std::int64_t n = 300, d = 37, k = 7, few = 3;
  const auto numbers = some_points<T>(n, d, 1), narrow = some_points<T>(n, few, 2);
  const Points<T> points{numbers.data(), n, d}, queries{numbers.data(), 40, d},
      others{numbers.data() + 40 * d, n - 40, d};
  for (const Metric metric : {Metric::dot, Metric::cosine, Metric::sqeuclidean, Metric::euclidean}) {
    digest.add(exact_neighbors(points, k, metric, {}, gemms, pool));
    digest.add(exact_query(queries, others, k, metric, gemms.sgemm, pool));
    digest.add(kdtree_neighbors(Points<T>{narrow.data(), n, few}, k, metric, pool));
  }
}

std::uint64_t exact_searches(const Blas& gemms, ThreadPool& pool) {
  Digest digest;
  add_searches<float>(gemms, pool, digest);
  add_searches<double>(gemms, pool, digest);
  add_searches<Half>(gemms, pool, digest);
  add_searches<std::int8_t>(gemms, pool, digest);
  add_searches<std::uint8_t>(gemms, pool, digest);
  return digest.value();
}

template <class T>
void add_cells(Metric metric, std::span<const float> basis, const Blas& gemms, ThreadPool& pool,
               Digest& digest) {
  constexpr std::int64_t n = 1200, d = 48, k = 5, held = 100;
  const auto numbers = some_points<T>(n + held, d, 3);
  const Points<T> points{numbers.data(), n, d}, queries{numbers.data() + n * d, held, d};
  const auto found = ivf_neighbors(points, k, metric, {}, {0.9, 50, 2}, basis, 5, gemms.sgemm, pool);
  digest.add(found.neighbors).add(found.lists);
  digest.add(
      std::vector<std::int64_t>{found.params.list_size, found.params.n_probes, found.params.n_candidates});
  const IvfIndex index(points, k, metric, {}, 0.9, {}, basis, 5, gemms.sgemm, pool);
  digest.add(index.query(queries, pool));
}

std::uint64_t cell_searches(const Blas& gemms, ThreadPool& pool) {
  Digest digest;
  for (const Metric metric : {Metric::dot, Metric::cosine, Metric::sqeuclidean})
    add_cells<float>(metric, {}, gemms, pool, digest);
  add_cells<std::int8_t>(Metric::euclidean, {}, gemms, pool, digest);
  const auto rows = some_points<float>(200, 48, 4);
  const PrincipalDirections found = find_principal_directions({rows.data(), 200, 48}, 16, 2);
  digest.add(found.rows).add(found.squares);
  add_cells<float>(Metric::sqeuclidean, found.rows, gemms, pool, digest);
  return digest.value();
}

std::uint64_t feature_searches(const Blas&, ThreadPool& pool) {
  Digest digest;
  Random random(6);
  constexpr std::int64_t n = 1500, columns = 400;
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> indices;
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = static_cast<std::int64_t>(random.next() % 30); c < columns;
         c += 1 + static_cast<std::int64_t>(random.next() % 60)) {
      indices.push_back(static_cast<std::int32_t>(c));
      values.push_back(static_cast<float>(random.uniform() + 0.1));
    }
    indptr.push_back(static_cast<std::int64_t>(indices.size()));
  }
  const SparseRows<float> rows{indptr, indices, values, columns};
  for (const Metric metric : {Metric::dot, Metric::cosine})
    digest.add(exact_neighbors(rows, 6, metric, pool));
  const Sets sets{indptr, indices, {}, columns};
  digest.add(jaccard_neighbors(sets, 6, pool));
  digest.add(minhash_neighbors(sets, 6, {}, {0.8, 60, 24}, 7, pool).neighbors);
  constexpr std::int64_t width = 3;
  std::vector<std::uint64_t> words(n * width);
  for (std::uint64_t& word : words) word = random.next() & random.next();
  digest.add(hamming_neighbors({words, n, width, 64 * width}, 6, pool));
  return digest.value();
}

std::uint64_t trees(const Blas& gemms, ThreadPool& pool) {
  Digest digest;
  constexpr std::int64_t n = 500, d = 11, k = 6;
  const auto numbers = some_points<float>(n, d, 8);
  for (const bool similar : {false, true}) {
    const Metric metric = similar ? Metric::dot : Metric::sqeuclidean;
    const Kind kind = similar ? Kind::similarity : Kind::distance;
    const Neighbors lists = exact_neighbors(Points<float>{numbers.data(), n, d}, k, metric, {}, gemms, pool);
    std::vector<std::int64_t> indptr;
    for (std::int64_t i = 0; i <= n; ++i) indptr.push_back(i * k);
    const Graph graph = symmetrize({indptr, lists.indices, lists.values}, kind, pool);
    const GraphView view{graph.indptr, graph.indices, graph.weights};
    digest.add(graph.indptr).add(graph.indices).add(graph.weights);
    std::vector<double> thresholds;
    for (int i = 0; i <= 60; ++i)
      thresholds.push_back(similar ? 3 - i / 20.0 : 0.01 * portable_exp(portable_log(800.0) * i / 60));
    RoundPlan plan;
    plan.kind = kind;
    plan.thresholds = thresholds;
    plan.shift = 30;
    plan.missing = similar ? 0 : 8;
    for (const Linkage linkage : {Linkage::average, Linkage::single, Linkage::complete}) {
      plan.linkage = linkage;
      digest.add(run_rounds(view, plan, pool));
    }
    plan.missing = {};
    for (const VectorLinkage linkage :
         {VectorLinkage::average, VectorLinkage::centroid, VectorLinkage::ward}) {
      if (similar && linkage == VectorLinkage::ward) continue;
      std::vector<float> means = numbers;
      digest.add(run_rounds(view, Vectors{means, d, linkage, metric, {}, {}}, plan, {}, pool)).add(means);
    }
  }
  return digest.value();
}

std::uint64_t dp_means_labels(const Blas& gemms, ThreadPool& pool) {
  Digest digest;
  constexpr std::int64_t n = 400, d = 9;
  const auto numbers = some_points<float>(n, d, 9);
  const Points<float> points{numbers.data(), n, d};
  for (const SeedRule rule : {SeedRule::bound, SeedRule::cost}) {
    const Seeds seeds = draw_dp_seeds(points, 0.8, rule, 3, gemms.sgemm, pool);
    digest.add(seeds.labels);
  }
  std::vector<std::int32_t> order(n);
  for (std::int64_t i = 0; i < n; ++i) order[i] = static_cast<std::int32_t>((i * 37) % n);
  const DpMeans found = solve_dp_means(points, order, {}, {0.8, 50, 20, 0.0}, gemms.sgemm, pool);
  return digest.add(found.labels).add(found.centers).add(found.history).value();
}

struct Expected {
  const char* name;
  std::uint64_t (*results)(const Blas&, ThreadPool&);
  std::uint64_t digest;
};

constexpr Expected kExpected[] = {
    {"exact searches", exact_searches, 0xcef593319fb64b22},
    {"searches by cells", cell_searches, 0x49573cffd09a8424},
    {"sparse rows, sets, bits", feature_searches, 0x9a363d72145bbd12},
    {"graphs and trees", trees, 0x03c303ef931c5a8f},
    {"DP-means", dp_means_labels, 0xb0f8235cdcdcb473},
};

// Compares products of many shapes, from one row to several blocks of rows, columns and terms.
TEST_CASE("matrix products are the same at every SIMD level") {
  Random random(10);
  for (const std::int64_t n : {1, 5, 97})
    for (const std::int64_t m : {1, 31, 1030})
      for (const std::int64_t d : {1, 8, 259}) {
        std::vector<float> rows(n * d), columns(m * d), expected(n * m), found;
        for (float& x : rows) x = static_cast<float>(random.uniform() - 0.5);
        for (float& x : columns) x = static_cast<float>(random.uniform() - 0.5);
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < m; ++j)
            for (std::int64_t l = 0; l < d; ++l) expected[i * m + j] += rows[i * d + l] * columns[j * d + l];
        for (const Simd level : available_levels()) {
          set_simd_level(level);
          multiply_rows(rows.data(), n, columns.data(), m, d, found);
          CHECK(std::equal(expected.begin(), expected.end(), found.begin()));
        }
      }
}

}  // namespace

TEST_CASE("results have the same digests at every SIMD level and with every BLAS") {
  bool same = true;
  for (const Simd level : available_levels()) {
    set_simd_level(level);
    for (const Expected& expected : kExpected)
      for (const bool reversed : {false, true}) {
        if (reversed && level != Simd::plain)
          continue;  // the order of the sums and the SIMD level are independent
        ThreadPool pool(reversed ? 2 : 1);
        const std::uint64_t digest = expected.results(reversed ? reversed_blas : blas, pool);
        if (digest == expected.digest) continue;
        same = false;
        std::printf("%s at level %s%s: 0x%016llx, not 0x%016llx\n", expected.name,
                    std::string(name_of(level)).c_str(), reversed ? " with reversed products" : "",
                    static_cast<unsigned long long>(digest),
                    static_cast<unsigned long long>(expected.digest));
      }
  }
  CHECK(same);
}
