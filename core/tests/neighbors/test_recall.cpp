#include <cmath>
#include <random>
#include <vector>

#include "neighbors/recall.hpp"
#include "test_case.hpp"

namespace {

constexpr std::int64_t kLists = 25;

// Returns the share of samples whose confidence interval contains the true recall.
// Each point misses the share `much` of its neighbours with probability `often`.
double covered(double often, double much) {
  constexpr int samples = 4000, points = 256;
  std::mt19937 rng(1);
  std::bernoulli_distribution misses(often);
  int right = 0;
  std::vector<double> shares(points);
  for (int s = 0; s < samples; ++s) {
    for (double& share : shares) share = misses(rng) ? 1 - much : 1;
    const agglo::Recall recall = agglo::estimate_recall(shares, kLists);
    CHECK(recall.sample == points);
    right += std::abs(recall.value - (1 - often * much)) <= recall.error;
  }
  return static_cast<double>(right) / samples;
}

}  // namespace

TEST_CASE("the confidence interval contains the true recall in 98.5 % of samples") {
  for (const double much : {1.0 / kLists, 0.2, 0.5, 1.0})
    for (const double often : {0.02, 0.05, 0.2, 0.5}) CHECK(covered(often, much) > 0.985);
}

TEST_CASE("so it does if misses are so rare that a sample may contain none") {
  for (const double much : {1.0 / kLists, 0.2, 0.5, 1.0})
    for (const double often : {0.0005, 0.002}) CHECK(covered(often, much) > 0.985);
}

TEST_CASE("a perfect sample has recall 1 with a positive margin of error") {
  const std::vector<std::int64_t> all(100, kLists);
  const agglo::Recall perfect = agglo::estimate_recall(all, kLists);
  CHECK(perfect.value == 1 && perfect.error > 0.001 && perfect.error < 0.02);
}
