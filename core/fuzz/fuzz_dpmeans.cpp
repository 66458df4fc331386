// Fuzzes the passes and the seeds of DP-means, with one thread and with two threads.
#include <numeric>

#include "../tests/blas.hpp"
#include "input.hpp"
#include "paper/dp_seeds.hpp"
#include "paper/dpmeans.hpp"

using namespace agglo;
using namespace agglo::paper;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::int64_t n = input.integer(1, 30), d = input.integer(1, 5);
  const double lam = static_cast<double>(input.integer(1, 200)) / 8;
  const std::int64_t epoch = input.integer(1, 8);
  const bool both = compare_threads(input);
  std::vector<float> numbers(n * d);
  for (float& x : numbers) x = input.real<float>(1e15);
  const Points<float> points{numbers.data(), n, d};
  std::vector<std::int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const DpMeansPlan plan{lam, epoch, 10, 0.0};
  const DpMeans one = solve_dp_means(points, order, {}, plan, blas.sgemm, one_thread());
  if (both) {
    const DpMeans two = solve_dp_means(points, order, {}, plan, blas.sgemm, two_threads());
    CHECK(one.labels == two.labels && one.centers == two.centers && one.history == two.history);
  }
  const auto clusters = static_cast<std::int64_t>(one.centers.size()) / d;
  for (const std::int32_t label : one.labels) CHECK(0 <= label && label < clusters);
  for (const SeedRule rule : {SeedRule::cost, SeedRule::bound}) {
    const Seeds first = draw_dp_seeds(points, lam, rule, 1, blas.sgemm, one_thread());
    if (both) CHECK(first.labels == draw_dp_seeds(points, lam, rule, 1, blas.sgemm, two_threads()).labels);
  }
  return 0;
}
