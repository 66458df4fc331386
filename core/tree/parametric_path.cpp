#include "tree/parametric_path.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "tree/pairing_heap.hpp"

namespace agglo {
namespace {

constexpr std::int32_t kNoChange = -1;

// The change of the best partition at the critical λ of a node. From this λ on, the node is merged.
struct Change {
  double lam;
  double cost;            // increase of the total cost
  double price;           // decrease of the total price
  std::int64_t clusters;  // decrease of the number of clusters
};

}  // namespace

// For a given λ, let f(v) be the smallest total of a partition of the leaves below node v.
// Let s(v) be the sum of f over the children of v.
// Every partition of v has at least the price of v.
// So the difference s(v) - cost(v) - λ price(v) never decreases as λ grows.
// The difference changes its sign at most once, at the critical λ of v. For larger λ, node v is merged.
// If a descendant of v would change at a larger λ than v, its change becomes part of the change of v.
// One sweep from the leaves to the root finds all changes. The changes of each subtree are in a heap.
// If no entry of `costs` is negative, all sums have only nonnegative terms. So no precision is lost.
ParametricPath compute_parametric_path(std::span<const std::int32_t> parent, std::int64_t leaves,
                                       std::span<const double> costs, std::span<const double> prices,
                                       std::span<const std::uint8_t> given) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto n = static_cast<std::int64_t>(parent.size());
  std::vector<std::int32_t> below(n - leaves, kNoChange);  // for each inner node: heap of changes below it
  std::vector<std::int32_t> children(n - leaves, 0);
  std::vector<Change> all(n - leaves);  // indexed by inner node
  PairingHeaps heaps(all.size(), [&](std::int32_t a, std::int32_t b) { return all[a].lam > all[b].lam; });
  ParametricPath path;
  path.critical.assign(n, 0.0);
  std::int32_t changes = kNoChange;
  for (std::int64_t v = 0; v < n; ++v) {
    changes = kNoChange;
    if (v >= leaves) {
      const auto i = static_cast<std::int32_t>(v - leaves);
      Change change{0.0, costs[i], prices[i], children[i] - 1};
      changes = below[i];
      if (given.empty() || !given[v]) {
        change.lam = infinity;
        if (change.price > 0) {
          // The smallest critical λ of the changes that have become part of this change.
          double smallest = infinity;
          while (changes != kNoChange && all[changes].lam * change.price >= change.cost) {
            smallest = all[changes].lam;
            change.cost += all[changes].cost;
            change.price += all[changes].price;
            change.clusters += all[changes].clusters;
            changes = heaps.pop(changes);
          }
          change.cost = std::max(0.0, change.cost);  // only rounding errors make it negative
          // Only rounding errors can make the quotient larger than the critical λ of such a change.
          change.lam = std::min(smallest, change.cost / change.price);
        }
      }
      path.critical[v] = change.lam;
      all[i] = change;
      changes = heaps.merge(i, changes);
    }
    if (v + 1 == n) break;
    const std::int64_t above = parent[v] - leaves;
    below[above] = heaps.merge(below[above], changes);
    ++children[above];
  }

  std::vector<Change> sorted;
  heaps.for_each(changes, [&](std::int32_t i) { sorted.push_back(all[i]); });
  // Compare all fields, so that changes with equal λ are always summed in the same order.
  std::sort(sorted.begin(), sorted.end(), [](const Change& a, const Change& b) {
    return std::tie(a.lam, a.cost, a.price, a.clusters) < std::tie(b.lam, b.cost, b.price, b.clusters);
  });
  path.lams.push_back(0.0);
  path.costs.push_back(0.0);
  path.prices.push_back(0.0);
  path.clusters.push_back(leaves);
  for (const Change& change : sorted) {
    if (change.lam > path.lams.back()) {
      path.lams.push_back(change.lam);
      path.costs.push_back(path.costs.back());
      path.prices.push_back(path.prices.back());
      path.clusters.push_back(path.clusters.back());
    }
    path.costs.back() += change.cost;
    path.prices.back() += change.price;
    path.clusters.back() -= change.clusters;
  }
  return path;
}

}  // namespace agglo
