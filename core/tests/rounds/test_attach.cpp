#include <cmath>
#include <limits>
#include <vector>

#include "rounds/attach.hpp"
#include "test_case.hpp"

namespace {

using agglo::Kind;
using agglo::Linkage;
using agglo::ThreadPool;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A tree of four leaves: {0, 1} merge in round 1, {2, 3} in round 2, and all leaves in round 3.
const std::vector<std::int32_t> parent{4, 4, 5, 5, 6, 6, -1}, size{1, 1, 1, 1, 2, 2, 4},
    merge_round{0, 0, 0, 0, 1, 2, 3};

agglo::Attachments attach(const std::vector<std::int64_t>& indptr, const std::vector<std::int32_t>& targets,
                          const std::vector<float>& weights, Linkage linkage, std::optional<double> missing,
                          const std::vector<float>& thresholds, int threads) {
  ThreadPool pool(threads);
  return agglo::attach_points({parent, size, merge_round, 4}, {indptr, targets, weights},
                              {{Kind::similarity, linkage, missing}, thresholds, {}}, pool);
}

TEST_CASE("a query joins the first cluster whose linkage reaches the threshold of a round") {
  for (const int threads : {1, 3}) {
    // With an edge to leaf 0 only, the average is the weight, then half of it, then a quarter of it.
    const std::vector<float> thresholds{0.9f, 0.8f, 0.5f, 0.2f};
    const auto found = attach({0, 1, 2, 3, 4, 4, 6}, {0, 0, 0, 0, -1, 3}, {0.95f, 0.85f, 1.0f, 0.7f, 0, 0.4f},
                              Linkage::average, 0.0, thresholds, threads);
    CHECK((found.node == std::vector<std::int32_t>{0, 6, 0, -1, -1, -1}));
    CHECK((found.round == std::vector<std::int32_t>{1, 4, 1, -1, -1, -1}));
    const auto single =
        attach({0, 1, 2, 3, 4, 4, 6}, {0, 0, 0, 0, -1, 3}, {0.95f, 0.85f, 1.0f, 0.7f, 0, 0.4f},
               Linkage::single, 0.0, thresholds, threads);
    CHECK((single.node == std::vector<std::int32_t>{0, 4, 0, 4, -1, 6}));
    CHECK((single.round == std::vector<std::int32_t>{1, 2, 1, 3, -1, 4}));
    CHECK(single.value[5] == 0.4f && std::isnan(single.value[4]));
  }
}

TEST_CASE("the value of an attachment is the linkage; ties go to the cluster of the smaller leaf") {
  // Both leaves of a pair are neighbours. Ties go to the cluster of the smaller leaf.
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
  // Pairs without an edge count with the weight `missing`, or are ignored.
  const auto few = attach({0, 1}, {2}, {0.5f}, Linkage::average, 0.25, late, 1);
  CHECK(few.node[0] == 5 && few.value[0] == 0.375);
  const auto ignored = attach({0, 1}, {2}, {0.5f}, Linkage::average, {}, late, 1);
  CHECK(ignored.node[0] == 5 && ignored.value[0] == 0.5);
  const auto farthest = attach({0, 1}, {2}, {0.5f}, Linkage::complete, 0.25, late, 1);
  CHECK(farthest.node[0] == 5 && farthest.value[0] == 0.25);
}

// On a line, the mean of {0, 1} is 0.5, and the mean of {2, 3} is 11.
TEST_CASE("queries attach to cluster means by the centroid linkage") {
  std::vector<float> points{0, 1, 10, 12};
  agglo::Vectors vectors;
  vectors.means = points;
  vectors.d = 1;
  const auto nodes = agglo::compute_node_moments(parent, 4, vectors);
  CHECK((nodes.mean == std::vector<float>{0.5f, 11, 5.75f}));
  CHECK((nodes.weight == std::vector<double>{1, 1, 1, 1, 2, 2, 4}));
  CHECK(nodes.spread[4] == 0.5 && nodes.spread[5] == 2 && nodes.spread[6] == 112.75);

  const std::vector<float> queries{2, 9}, thresholds{-1, -1, -3, -kInfinity};
  agglo::MeanAttachment means;
  means.linkage = agglo::VectorLinkage::centroid;
  means.metric = agglo::Metric::sqeuclidean;
  means.d = 1;
  means.points = queries;
  means.weight = nodes.weight;
  means.squared_norm = nodes.squared_norm;
  means.spread = nodes.spread;
  means.mean = nodes.mean;
  means.thresholds = thresholds;
  const std::vector<std::int64_t> indptr{0, 2, 3};
  const std::vector<std::int32_t> targets{0, 1, 2};
  const std::vector<float> weights{4, 1.5f, 1};
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const auto found =
        agglo::attach_points({parent, size, merge_round, 4}, {indptr, targets, weights}, means, pool);
    // Query 2 has distance 1.5 to point 1, beyond the first limit, and 2.25 to the mean of points 0 and 1.
    // Query 9 has distance 1 to point 10.
    CHECK((found.node == std::vector<std::int32_t>{4, 2}));
    CHECK((found.round == std::vector<std::int32_t>{3, 1}));
    CHECK((found.value == std::vector<double>{-2.25, -1}));
  }
}

}  // namespace
