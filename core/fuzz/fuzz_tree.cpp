// Fuzzes the validation of trees, and the operations on valid trees.
#include <numeric>

#include "input.hpp"
#include "tree/dp_means_path.hpp"
#include "tree/exact_k.hpp"
#include "tree/node_costs.hpp"
#include "tree/tree.hpp"

using namespace agglo;

namespace {

// Validation must accept or reject columns of any content without a crash.
void check_validation(Input& input) {
  const std::int64_t nodes = input.integer(0, 6);
  std::vector<std::int32_t> parent, size, round;
  std::vector<double> height;
  for (std::int64_t v = 0; v < nodes; ++v) {
    parent.push_back(static_cast<std::int32_t>(input.integer(0, 8) - 1));
    size.push_back(static_cast<std::int32_t>(input.integer(0, 6)));
    round.push_back(static_cast<std::int32_t>(input.integer(0, 4) - 1));
    height.push_back(input.read<double>());
  }
  std::vector<std::int64_t> before, after;
  for (std::int64_t left = input.integer(0, 3); left > 0; --left) {
    before.push_back(input.integer(0, 6));
    after.push_back(input.integer(0, 6));
  }
  find_violation({parent, height, size, round}, before, after);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  Input input(data, length);
  const std::int64_t leaves = input.integer(0, 40);
  if (leaves == 0) {
    check_validation(input);
    return 0;
  }
  const bool both = compare_threads(input);
  // Merge a few roots at a time, until one root remains.
  std::vector<std::int32_t> parent(leaves, -1), size(leaves, 1), round(leaves, 0), roots(leaves);
  std::vector<double> height(leaves, 0.0), costs(leaves, 0.0);
  std::iota(roots.begin(), roots.end(), 0);
  std::vector<std::int64_t> before, after;
  while (roots.size() > 1) {
    const auto first =
        static_cast<std::size_t>(input.integer(0, static_cast<std::int64_t>(roots.size()) - 2));
    const auto most = static_cast<std::int64_t>(roots.size() - first);
    const auto count = static_cast<std::size_t>(input.integer(2, std::min<std::int64_t>(most, 5)));
    const auto node = static_cast<std::int32_t>(parent.size());
    std::int32_t below = 0;
    double highest = 0, dearest = 0;
    for (std::size_t r = first; r < first + count; ++r) {
      parent[roots[r]] = node;
      below += size[roots[r]];
      highest = std::max(highest, height[roots[r]]);
      dearest += costs[roots[r]];
    }
    before.push_back(static_cast<std::int64_t>(roots.size()));
    roots.erase(roots.begin() + static_cast<std::int64_t>(first) + 1,
                roots.begin() + static_cast<std::int64_t>(first + count));
    roots[first] = node;
    after.push_back(static_cast<std::int64_t>(roots.size()));
    parent.push_back(-1);
    size.push_back(below);
    round.push_back(static_cast<std::int32_t>(before.size()));
    height.push_back(highest + static_cast<double>(input.integer(0, 3)));
    costs.push_back(dearest + static_cast<double>(input.integer(0, 5)));
  }
  if (leaves > 1) CHECK(find_violation({parent, height, size, round}, before, after).empty());
  CHECK(make_heights_monotone(parent, height) == height);

  const Descendants tree = index_descendants(parent, size, leaves);
  find_largest_children(tree, size);
  CHECK(to_scipy_linkage({parent, height, size, round}, leaves).size() ==
        static_cast<std::size_t>(4 * (leaves - 1)));

  const PricePath path = compute_price_path(parent, costs, leaves);
  CHECK(path.clusters.back() == 1);
  for (std::size_t piece = 1; piece < path.lams.size(); ++piece)
    CHECK(path.lams[piece] > path.lams[piece - 1] && path.clusters[piece] < path.clusters[piece - 1]);
  for (const CountRange& run : find_possible_counts(parent, leaves))
    CHECK(1 <= run.first && run.last <= leaves);

  std::vector<float> points(leaves * 2);
  for (float& x : points) x = input.real<float>(1e6);
  for (const CenterKind centers : {CenterKind::means, CenterKind::points}) {
    const auto one =
        compute_node_costs(Points<float>{points.data(), leaves, 2}, parent, size, centers, one_thread());
    if (!both) continue;
    const auto two =
        compute_node_costs(Points<float>{points.data(), leaves, 2}, parent, size, centers, two_threads());
    CHECK(one.costs == two.costs && one.centers == two.centers);
  }
  return 0;
}
