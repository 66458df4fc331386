#include <algorithm>
#include <random>
#include <stdexcept>

#include "blas.hpp"
#include "paper/exemplars.hpp"
#include "test_case.hpp"

using namespace agglo;
using namespace agglo::paper;

namespace {

struct Data {
  std::vector<float> numbers;
  std::vector<double> weights;
  std::vector<std::int32_t> seeds{0}, labels;  // initially, all points have the same exemplar
  std::int64_t n, d;

  Points<float> points() const { return {numbers.data(), n, d}; }

  double square(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t c = 0; c < d; ++c) {
      const double difference = double{numbers[i * d + c]} - double{numbers[j * d + c]};
      sum += difference * difference;
    }
    return sum;
  }
};

Data random_data(std::int64_t n, std::int64_t d, unsigned seed) {
  std::mt19937 random(seed);
  Data data{{}, {}, {0}, std::vector<std::int32_t>(n, 0), n, d};
  for (std::int64_t j = 0; j < n * d; ++j)
    data.numbers.push_back(static_cast<float>(random() % 100000) / 1000);
  for (std::int64_t i = 0; i < n; ++i) data.weights.push_back(1 + random() % 3);
  return data;
}

Exemplars solve(const Data& data, double lam, int threads, const Report& report = {}) {
  ThreadPool pool(threads);
  return solve_exemplars(data.points(), data.weights, data.seeds, data.labels, {lam, 50, 1e-3}, blas.sgemm,
                         pool, report);
}

void test_solution(std::int64_t n, std::int64_t d, double lam, unsigned seed) {
  const Data data = random_data(n, d, seed);
  const Exemplars found = solve(data, lam, 1);
  double cost = lam * static_cast<double>(found.exemplars.size());
  for (std::int64_t i = 0; i < n; ++i) {
    double least = data.square(i, found.exemplars[found.labels[i]]);
    cost += data.weights[i] * least;
    for (const std::int32_t e : found.exemplars) CHECK(data.square(i, e) >= least);
  }
  CHECK(std::abs(cost - found.cost) <= 1e-9 * cost);
  CHECK(found.bound <= found.relaxed && found.relaxed <= found.cost);
  CHECK(!found.converged || found.relaxed - found.bound <= 1e-3 * found.relaxed);
  CHECK(std::is_sorted(found.history.rbegin(), found.history.rend()));
  // No single exemplar may cost less than the lower bound.
  for (std::int64_t e = 0; e < n; ++e) {
    double alone = lam;
    for (std::int64_t i = 0; i < n; ++i) alone += data.weights[i] * data.square(i, e);
    CHECK(found.bound <= alone * (1 + 1e-12));
  }
  for (const int threads : {2, 3}) {
    const Exemplars again = solve(data, lam, threads);
    CHECK(again.exemplars == found.exemplars);
    CHECK(again.labels == found.labels);
    CHECK(again.history == found.history);
    CHECK(again.bound == found.bound);
  }
}

TEST_CASE("an exception of the progress function stops the solver") {
  const Data data = random_data(600, 2, 1);
  CHECK(throws<std::runtime_error>([&] { solve(data, 10.0, 2, stop); }));
}

}  // namespace

TEST_CASE("every point has its nearest exemplar, and the lower bound holds") {
  for (const double lam : {1.0, 200.0, 1e5}) {
    test_solution(1, 2, lam, 1);
    test_solution(60, 1, lam, 2);
  }
  test_solution(600, 3, 200.0, 3);
}
