#include "tree/parametric_path.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace agglo {
namespace {

constexpr std::int32_t kNoChange = -1;

// The change of the best partition at the λ where merging a node becomes cheaper than splitting it.
struct Change {
  double lam;
  double cost;            // increase of the total cost
  double price;           // decrease of the total price
  std::int64_t clusters;  // decrease of the number of clusters
};

// Pairing heaps of changes, with the largest λ on top.
// A change is linked to its first child and its next sibling.
// No function is recursive, because a heap may be very deep.
class Heaps {
 public:
  explicit Heaps(std::size_t n) : changes_(n), child_(n, kNoChange), sibling_(n, kNoChange) {}

  Change& operator[](std::int32_t i) { return changes_[i]; }

  // Merges two heaps.
  std::int32_t merge(std::int32_t a, std::int32_t b) {
    if (a == kNoChange) return b;
    if (b == kNoChange) return a;
    if (changes_[a].lam < changes_[b].lam) std::swap(a, b);
    sibling_[b] = child_[a];
    child_[a] = b;
    return a;
  }

  // Removes the top. Returns the rest of the heap.
  std::int32_t pop(std::int32_t top) {
    std::int32_t pairs = kNoChange;  // merged pairs, linked by sibling_ in reverse order
    for (std::int32_t a = child_[top]; a != kNoChange;) {
      const std::int32_t b = sibling_[a];
      const std::int32_t next = b == kNoChange ? kNoChange : sibling_[b];
      sibling_[a] = kNoChange;
      if (b != kNoChange) sibling_[b] = kNoChange;
      const std::int32_t pair = merge(a, b);
      sibling_[pair] = pairs;
      pairs = pair;
      a = next;
    }
    std::int32_t heap = kNoChange;
    while (pairs != kNoChange) {
      const std::int32_t next = sibling_[pairs];
      sibling_[pairs] = kNoChange;
      heap = merge(heap, pairs);
      pairs = next;
    }
    return heap;
  }

  // Calls visit(change) for all changes of a heap, in no particular order.
  template <class Visit>
  void for_each(std::int32_t heap, const Visit& visit) const {
    std::vector<std::int32_t> waiting;
    if (heap != kNoChange) waiting.push_back(heap);
    while (!waiting.empty()) {
      const std::int32_t i = waiting.back();
      waiting.pop_back();
      visit(changes_[i]);
      for (std::int32_t j = child_[i]; j != kNoChange; j = sibling_[j]) waiting.push_back(j);
    }
  }

 private:
  std::vector<Change> changes_;
  std::vector<std::int32_t> child_, sibling_;
};

}  // namespace

// For a given λ, let f(v) be the least cost of a partition of node v, and let s(v) be the sum of f over its
// children. As a function of λ, s(v) - cost(v) - λ price(v) never falls: every partition of v has at least
// the price of v. So it changes its sign once, at the critical λ of the node. For larger λ the node is
// merged. Then changes of its descendants at a larger λ have no effect, and they become part of the change of
// the node. One sweep from the leaves to the root finds all changes. The changes of each subtree are in a
// heap. If no entry of `costs` is negative, all sums have only positive terms, so there is no cancellation.
ParametricPath compute_parametric_path(std::span<const std::int32_t> parent, std::int64_t leaves,
                                       std::span<const double> costs, std::span<const double> prices,
                                       std::span<const std::uint8_t> given) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto n = static_cast<std::int64_t>(parent.size());
  std::vector<std::int32_t> below(n - leaves, kNoChange);  // by inner node: the changes of its descendants
  std::vector<std::int32_t> children(n - leaves, 0);
  Heaps heaps(n - leaves);
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
        change.lam = kInfinity;
        if (change.price > 0) {
          while (changes != kNoChange && heaps[changes].lam * change.price >= change.cost) {
            change.cost += heaps[changes].cost;
            change.price += heaps[changes].price;
            change.clusters += heaps[changes].clusters;
            changes = heaps.pop(changes);
          }
          change.cost = std::max(0.0, change.cost);  // negative only by rounding
          change.lam = change.cost / change.price;
        }
      }
      path.critical[v] = change.lam;
      heaps[i] = change;
      changes = heaps.merge(i, changes);
    }
    if (v + 1 == n) break;
    const std::int64_t above = parent[v] - leaves;
    below[above] = heaps.merge(below[above], changes);
    ++children[above];
  }

  std::vector<Change> sorted;
  heaps.for_each(changes, [&](const Change& change) { sorted.push_back(change); });
  // Compare all fields, so that changes of equal λ are always summed in the same order.
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
