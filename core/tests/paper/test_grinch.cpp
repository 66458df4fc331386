#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

#include "paper/grinch.hpp"
#include "simd/dot.hpp"
#include "test_case.hpp"

using namespace agglo;
using namespace agglo::paper;

namespace {

constexpr std::int64_t kNear = 3;

// Points on a line in random order, and the cluster of each point.
// Neighbouring points in a cluster have distance 1. Neighbouring clusters have distance 2.
struct Line {
  std::vector<float> numbers;
  std::vector<int> part;

  Points<float> points() const { return {numbers.data(), static_cast<std::int64_t>(numbers.size()), 1}; }
};

Line random_line(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> place(n);
  std::iota(place.begin(), place.end(), 0);
  std::shuffle(place.begin(), place.end(), random);
  Line line{std::vector<float>(n), std::vector<int>(n)};
  float at = 0;
  int part = 0;
  for (std::int64_t s = 0; s < n; ++s) {
    const bool far = random() % 5 == 0;
    at += far ? 2.0f : 1.0f;
    part += far;
    line.numbers[place[s]] = at;
    line.part[place[s]] = part;
  }
  return line;
}

std::vector<std::int32_t> near_before(const Points<float>& points) {
  std::vector<std::int32_t> near(points.n * kNear, -1);
  for (std::int32_t i = 0; i < points.n; ++i) {
    std::vector<std::int32_t> before(i);
    std::iota(before.begin(), before.end(), 0);
    std::stable_sort(before.begin(), before.end(), [&](std::int32_t a, std::int32_t b) {
      return squared_distance(points.row(i), points.row(a), points.d) <
             squared_distance(points.row(i), points.row(b), points.d);
    });
    for (std::int64_t s = 0; s < std::min<std::int64_t>(kNear, i); ++s) near[i * kNear + s] = before[s];
  }
  return near;
}

void check_tree(const Grinch& tree, std::int64_t n) {
  const auto nodes = static_cast<std::int64_t>(tree.parent.size());
  CHECK(nodes == 2 * n - 1 && tree.value.size() == tree.parent.size());
  std::vector<int> children(nodes, 0);
  for (std::int64_t v = 0; v + 1 < nodes; ++v) {
    CHECK(tree.parent[v] > v && tree.parent[v] >= n && tree.parent[v] < nodes);
    ++children[tree.parent[v]];
  }
  CHECK(tree.parent.back() == -1);
  for (std::int64_t v = n; v < nodes; ++v) CHECK(children[v] == 2);
}

// Checks that every cluster is a node of the tree.
void check_parts(const Grinch& tree, const Line& line) {
  const std::size_t nodes = tree.parent.size(), n = line.part.size();
  std::vector<int> part(nodes, -1), size(nodes, 0), total(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    part[i] = line.part[i];
    size[i] = 1;
    ++total[part[i]];
  }
  std::vector<char> mixed(nodes, 0);
  for (std::size_t v = 0; v + 1 < nodes; ++v) {
    const std::int32_t over = tree.parent[v];
    mixed[over] |= mixed[v] || (part[over] >= 0 && part[over] != part[v]);
    part[over] = part[v];
    size[over] += size[v];
  }
  for (std::size_t p = 0; p <= n; ++p) {
    bool found = total[p] == 0;
    for (std::size_t v = 0; v < nodes; ++v)
      found |= !mixed[v] && part[v] == static_cast<int>(p) && size[v] == total[p];
    CHECK(found);
  }
}

void test_trees(std::int64_t n, unsigned seed) {
  const Line line = random_line(n, seed);
  const std::vector<std::int32_t> near = near_before(line.points());
  for (const auto linkage :
       {GrinchLinkage::average, GrinchLinkage::centroid, GrinchLinkage::single, GrinchLinkage::complete})
    for (const bool scan : {true, false})
      for (const std::int64_t cap : {0, 7}) {
        for (const bool eliminate : {true, false})
          check_tree(
              build_grinch_tree(line.points(), near, kNear, {linkage, false, scan, true, eliminate, cap}), n);
        check_tree(build_grinch_tree(line.points(), near, kNear, {linkage, true, scan, false, false, cap}),
                   n);
      }
  check_parts(
      build_grinch_tree(line.points(), near, kNear, {GrinchLinkage::single, false, true, true, false, 0}),
      line);
}

TEST_CASE("an exception of the progress function stops Grinch") {
  const Line line = random_line(50, 1);
  CHECK(throws<std::runtime_error>([&] {
    build_grinch_tree(line.points(), near_before(line.points()), kNear,
                      {GrinchLinkage::average, false, true, true, false, 0}, stop);
  }));
}

}  // namespace

TEST_CASE("Grinch builds binary trees, and with single linkage every separated cluster is a node") {
  for (const std::int64_t n : {1, 2, 3, 4, 30, 90})
    for (unsigned seed = 0; seed < 3; ++seed) test_trees(n, seed);
}
