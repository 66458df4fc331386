#include <random>
#include <vector>

#include "rounds/rounds.hpp"
#include "test_case.hpp"

using namespace agglo;

namespace {

constexpr std::int64_t kPoints = 500, kColumns = 11;

// Returns random points on a coarse grid, so that values tie.
std::vector<float> random_points() {
  std::mt19937 random(3);
  std::vector<float> points(kPoints * kColumns);
  for (float& number : points) number = static_cast<float>(random() % 5) / 4;
  return points;
}

// Returns a graph with edges between points with similar ids.
Graph random_graph(const std::vector<float>& points, Metric metric, ThreadPool& pool) {
  std::mt19937 random(4);
  std::vector<std::int32_t> sources, targets;
  std::vector<float> weights;
  for (std::int32_t i = 0; i < kPoints; ++i)
    for (int k = 0; k < 5; ++k) {
      const auto j = static_cast<std::int32_t>((i + 1 + random() % 40) % kPoints);
      const float *x = points.data() + i * kColumns, *y = points.data() + j * kColumns;
      sources.push_back(i);
      targets.push_back(j);
      weights.push_back(
          static_cast<float>(is_similarity(metric) ? dot(x, y, kColumns) : squared_distance(x, y, kColumns)));
    }
  const Graph rows = edges_to_csr(kPoints, sources, targets, weights);
  return symmetrize({rows.indptr, rows.indices, rows.weights},
                    is_similarity(metric) ? Kind::similarity : Kind::distance, pool);
}

Forest run(const std::vector<float>& points, const Graph& graph, Vectors vectors, bool mutual, int threads) {
  std::vector<float> means = points;
  vectors.means = means;
  vectors.d = kColumns;
  const bool similar = is_similarity(vectors.metric) && vectors.linkage != VectorLinkage::ward;
  std::vector<double> thresholds;
  for (int i = 0; i < 60; ++i) thresholds.push_back(similar ? 6 - i / 8.0 : i * i / 4.0);
  RoundPlan plan;
  plan.kind = similar ? Kind::similarity : Kind::distance;
  if (!mutual) plan.thresholds = thresholds;
  plan.mutual = mutual;
  const std::vector<std::int32_t> must_link{1, 2, 2, 70}, cannot_link{0, 1, 5, 9};
  ThreadPool pool(threads);
  return run_rounds({graph.indptr, graph.indices, graph.weights}, vectors, plan,
                    Constraints{must_link, cannot_link, {}, 300.0, {}}, pool);
}

void threads_do_not_matter(VectorLinkage linkage, Metric metric, bool mutual) {
  ThreadPool one(1);
  const std::vector<float> points = random_points();
  const Graph graph = random_graph(points, metric, one);
  Vectors vectors;
  vectors.linkage = linkage;
  vectors.metric = metric;
  const Forest expected = run(points, graph, vectors, mutual, 1);
  CHECK(expected.parent.size() > kPoints + 50);
  for (const int threads : {2, 8}) {
    const Forest forest = run(points, graph, vectors, mutual, threads);
    CHECK(forest.parent == expected.parent);
    CHECK(forest.size == expected.size);
    CHECK(forest.round == expected.round);
    CHECK(std::vector(forest.value.begin() + kPoints, forest.value.end()) ==
          std::vector(expected.value.begin() + kPoints, expected.value.end()));
  }
}

// Compares the linkages of two points, and of the mean of two other points, with values computed by hand.
TEST_CASE("the linkages of points and of a mean are those computed by hand") {
  std::vector<float> means{0, 0, 4, 0, 1, 0, 1, 2};  // points (0, 0), (4, 0), (1, 0), (1, 2) in a plane
  Vectors vectors;
  vectors.means = means;
  vectors.d = 2;
  vectors.metric = Metric::sqeuclidean;
  vectors.linkage = VectorLinkage::average;
  Moments moments(vectors, 4);
  CHECK(moments.value(0, 1, 16) == -16);
  Moments::Scratch scratch;
  const std::vector<Id> parts{2, 3};
  moments.merge(parts, scratch);
  CHECK(moments.weight(2) == 2);
  CHECK(means[4] == 1 && means[5] == 1);
  CHECK(moments.value(0, 2, 0) == -3);   // minus the mean of 1 and 5
  CHECK(moments.value(2, 1, 0) == -11);  // minus the mean of 9 and 13
}

}  // namespace

TEST_CASE("forests of vector linkages do not depend on the number of threads") {
  for (const bool mutual : {false, true}) {
    for (const Metric metric : {Metric::dot, Metric::sqeuclidean})
      threads_do_not_matter(VectorLinkage::average, metric, mutual);
    for (const VectorLinkage linkage : {VectorLinkage::centroid, VectorLinkage::ward})
      threads_do_not_matter(linkage, Metric::sqeuclidean, mutual);
  }
}
