#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"
#include "predict.hpp"

namespace {

using agglo::Kind;
using agglo::Linkage;
using agglo::Team;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Four leaves: {0, 1} merge in round 1, {2, 3} in round 2, all in round 3.
const std::vector<std::int32_t> parent{4, 4, 5, 5, 6, 6, -1}, size{1, 1, 1, 1, 2, 2, 4},
    made{0, 0, 0, 0, 1, 2, 3};

agglo::Attached attach(const std::vector<std::int64_t>& indptr, const std::vector<std::int32_t>& targets,
                       const std::vector<float>& weights, Linkage linkage, std::optional<double> missing,
                       const std::vector<float>& limits, int threads) {
  Team team(threads);
  return agglo::attached(parent, size, made, 4, {indptr, targets, weights},
                         {Kind::similarity, linkage, missing, limits}, team);
}

void check_rounds() {
  for (const int threads : {1, 3}) {
    // To 0 alone: as close as it is in round 1, then half of it, then a quarter.
    const std::vector<float> limits{0.9f, 0.8f, 0.5f, 0.2f};
    const auto found = attach({0, 1, 2, 3, 4, 4, 6}, {0, 0, 0, 0, -1, 3}, {0.95f, 0.85f, 1.0f, 0.7f, 0, 0.4f},
                              Linkage::average, 0.0, limits, threads);
    CHECK((found.node == std::vector<std::int32_t>{0, 6, 0, -1, -1, -1}));
    CHECK((found.round == std::vector<std::int32_t>{1, 4, 1, -1, -1, -1}));
    const auto single = attach({0, 1, 2, 3, 4, 4, 6}, {0, 0, 0, 0, -1, 3},
                               {0.95f, 0.85f, 1.0f, 0.7f, 0, 0.4f}, Linkage::single, 0.0, limits, threads);
    CHECK((single.node == std::vector<std::int32_t>{0, 4, 0, 4, -1, 6}));
    CHECK((single.round == std::vector<std::int32_t>{1, 2, 1, 3, -1, 4}));
    CHECK(single.value[5] == 0.4f && std::isnan(single.value[4]));
  }
}

void check_linkages() {
  // Both of a pair are neighbours, and ties go to the smaller leaf.
  const std::vector<float> late{kInfinity, kInfinity, 0.1f, -kInfinity};
  const std::vector<std::int64_t> indptr{0, 4};
  const std::vector<std::int32_t> targets{3, 1, 0, 2};
  const std::vector<float> weights{0.5f, 0.25f, 0.75f, 0.5f};
  const auto average = attach(indptr, targets, weights, Linkage::average, 0.0, late, 1);
  CHECK(average.node[0] == 4 && average.round[0] == 3 && average.value[0] == 0.5);
  const auto complete = attach(indptr, targets, weights, Linkage::complete, 0.0, late, 1);
  CHECK(complete.node[0] == 5 && complete.value[0] == 0.5);
  const auto single = attach(indptr, targets, weights, Linkage::single, {}, late, 1);
  CHECK(single.node[0] == 4 && single.value[0] == 0.75);
  // What is absent counts as `missing`, or not at all.
  const auto few = attach({0, 1}, {2}, {0.5f}, Linkage::average, 0.25, late, 1);
  CHECK(few.node[0] == 5 && few.value[0] == 0.375);
  const auto ignored = attach({0, 1}, {2}, {0.5f}, Linkage::average, {}, late, 1);
  CHECK(ignored.node[0] == 5 && ignored.value[0] == 0.5);
  const auto farthest = attach({0, 1}, {2}, {0.5f}, Linkage::complete, 0.25, late, 1);
  CHECK(farthest.node[0] == 5 && farthest.value[0] == 0.25);
}

void check_closest() {
  const std::vector<std::int64_t> indptr{0, 5, 5, 7};
  const std::vector<std::int32_t> targets{2, 1, -1, 2, 0, 0, 1};
  const std::vector<float> weights{3, 1, 9, 2, 0, 5, 5};
  Team team(2);
  const auto near = agglo::closest({indptr, targets, weights}, 2, Kind::distance, team);
  CHECK((near.indices == std::vector<std::int32_t>{1, 2, -1, -1, 0, 1}));
  CHECK((near.values == std::vector<float>{1, 2, 0, 0, 5, 5}));
  const auto alike = agglo::closest({indptr, targets, weights}, 1, Kind::similarity, team);
  CHECK((alike.indices == std::vector<std::int32_t>{2, -1, 0}) && alike.values[0] == 3);
}

}  // namespace

int main() {
  check_rounds();
  check_linkages();
  check_closest();
  return 0;
}
