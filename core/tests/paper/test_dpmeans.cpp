#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

#include "blas.hpp"
#include "paper/dp_seeds.hpp"
#include "paper/dpmeans.hpp"
#include "test_case.hpp"

using namespace agglo;
using namespace agglo::paper;

namespace {

struct Data {
  std::vector<float> numbers;
  std::vector<std::int32_t> order;
  std::int64_t n, d;

  Points<float> points() const { return {numbers.data(), n, d}; }
};

// Returns points with duplicates and ties, in random order.
Data random_data(std::int64_t n, std::int64_t d, unsigned seed) {
  std::mt19937 random(seed);
  Data data{{}, std::vector<std::int32_t>(n), n, d};
  for (std::int64_t j = 0; j < n * d; ++j) data.numbers.push_back(static_cast<float>(random() % 9));
  std::iota(data.order.begin(), data.order.end(), 0);
  std::shuffle(data.order.begin(), data.order.end(), random);
  return data;
}

double square(const Data& data, std::int64_t i, const double* center) {
  double sum = 0;
  for (std::int64_t j = 0; j < data.d; ++j) {
    const double difference = data.numbers[i * data.d + j] - center[j];
    sum += difference * difference;
  }
  return sum;
}

// Computes the first pass without initial centers by its definition, point by point.
// Sums of small integers are exact.
std::vector<std::int32_t> plain_pass(const Data& data, double lam, std::int64_t epoch) {
  std::vector<double> centers;
  std::vector<std::int64_t> epochs;
  std::vector<std::int32_t> labels(data.n);
  for (std::int64_t place = 0; place < data.n; ++place) {
    const std::int32_t i = data.order[place];
    std::int32_t nearest = -1;
    double least = 0;
    for (const bool own : {false, true}) {
      for (std::size_t k = 0; k < epochs.size(); ++k) {
        if (own != (epochs[k] == place / epoch)) continue;
        const double found = square(data, i, centers.data() + static_cast<std::int64_t>(k) * data.d);
        if (nearest < 0 || found < least) {
          nearest = static_cast<std::int32_t>(k);
          least = found;
        }
      }
      if (nearest >= 0 && least <= lam) break;
    }
    if (nearest < 0 || least > lam) {
      nearest = static_cast<std::int32_t>(epochs.size());
      epochs.push_back(place / epoch);
      const float* x = data.numbers.data() + i * data.d;
      centers.insert(centers.end(), x, x + data.d);
    }
    labels[i] = nearest;
  }
  return labels;
}

void test_passes(std::int64_t n, std::int64_t d, double lam, std::int64_t epoch, unsigned seed) {
  const Data data = random_data(n, d, seed);
  ThreadPool one(1);
  const DpMeans first = solve_dp_means(data.points(), data.order, std::span<const double>(),
                                       {lam, epoch, 1, 0}, blas.sgemm, one);
  CHECK(first.labels == plain_pass(data, lam, epoch));
  const DpMeans whole = solve_dp_means(data.points(), data.order, std::span<const double>(),
                                       {lam, epoch, 100, 0}, blas.sgemm, one);
  CHECK(std::is_sorted(whole.history.rbegin(), whole.history.rend(),
                       [](double a, double b) { return a < b - 1e-9 * b; }));
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    const DpMeans again = solve_dp_means(data.points(), data.order, std::span<const double>(),
                                         {lam, epoch, 100, 0}, blas.sgemm, pool);
    CHECK(again.labels == whole.labels);
    CHECK(again.centers == whole.centers);
    CHECK(again.history == whole.history);
  }
  const std::vector<double> means = compute_cluster_means(
      data.points(), whole.labels, static_cast<std::int64_t>(whole.centers.size()) / d, one);
  CHECK(means == whole.centers);
}

void test_seeds(std::int64_t n, std::int64_t d, double lam, SeedRule rule, unsigned seed) {
  const Data data = random_data(n, d, seed);
  ThreadPool one(1);
  const Seeds found = draw_dp_seeds(data.points(), lam, rule, seed, blas.sgemm, one);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<double> squares;
    for (const std::int32_t s : found.seeds) {
      const float* x = data.numbers.data() + s * d;
      squares.push_back(square(data, i, std::vector<double>(x, x + d).data()));
    }
    const auto least = std::min_element(squares.begin(), squares.end());
    CHECK(found.labels[i] == least - squares.begin());
    sum += *least;
  }
  CHECK(found.distances.back() == sum);
  if (lam == 0) CHECK(sum == 0);
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    const Seeds again = draw_dp_seeds(data.points(), lam, rule, seed, blas.sgemm, pool);
    CHECK(again.seeds == found.seeds);
    CHECK(again.labels == found.labels);
    CHECK(again.distances == found.distances);
  }
}

TEST_CASE("an exception of the progress function stops the solvers") {
  const Data data = random_data(3000, 3, 1);
  ThreadPool pool(2);
  CHECK(throws<std::runtime_error>([&] {
    solve_dp_means(data.points(), data.order, std::span<const double>(), {1.0, 1, 100, 0}, blas.sgemm, pool,
                   stop);
  }));
  CHECK(throws<std::runtime_error>(
      [&] { draw_dp_seeds(data.points(), 1.0, SeedRule::cost, 1, blas.sgemm, pool, stop); }));
}

}  // namespace

TEST_CASE("the passes of DP-means are those of the definition, and the cost never rises") {
  for (const std::int64_t epoch : {1, 10, 300, 5000})
    for (const double lam : {0.0, 5.0, 40.0, 1e9}) {
      test_passes(1, 2, lam, epoch, 1);
      test_passes(300, 3, lam, epoch, 2);
      test_passes(700, 5, lam, epoch, 3);
    }
  test_passes(1300, 5, 40.0, 300, 3);  // several chunks of parallel work
}

TEST_CASE("every point has the label of its nearest seed, with any number of threads") {
  for (const SeedRule rule : {SeedRule::cost, SeedRule::bound})
    for (const double lam : {0.0, 2.0, 100.0}) {
      test_seeds(1, 2, lam, rule, 4);
      test_seeds(1100, 4, lam, rule, 5);
    }
}
