#include "tree/dp_means_path.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace agglo {
namespace {

constexpr std::int32_t kNoChange = -1;

// The change of the best partition at the λ where merging a node becomes cheaper than splitting it.
// The new partition has fewer clusters and a larger sum of node costs.
struct Change {
  double lam;
  double cost;            // increase of the sum of node costs
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

template <class T>
std::vector<T> sum_descendants(std::span<const std::int32_t> parent, std::span<const T> values) {
  std::vector<T> sums(values.begin(), values.end());
  for (std::size_t v = 0; v + 1 < sums.size(); ++v) sums[parent[v]] += sums[v];
  return sums;
}

template std::vector<double> sum_descendants(std::span<const std::int32_t>, std::span<const double>);
template std::vector<std::int64_t> sum_descendants(std::span<const std::int32_t>,
                                                   std::span<const std::int64_t>);

std::vector<std::uint8_t> select_cheapest_nodes(std::span<const std::int32_t> parent,
                                                std::span<const double> costs) {
  const std::size_t n = parent.size();
  std::vector<double> split(n, 0.0);
  std::vector<std::uint8_t> merged(n), inner(n, 0);
  for (std::size_t v = 0; v < n; ++v) {
    merged[v] = !inner[v] || costs[v] <= split[v];
    if (v + 1 == n) break;
    split[parent[v]] += merged[v] ? costs[v] : split[v];
    inner[parent[v]] = 1;
  }
  return merged;
}

// For a given λ, the least cost of node v is f_v(λ) = min(costs[v] + λ, sum of f over the children of v).
// The first term is a line of slope 1. The sum has slope 2 or more everywhere.
// So the two cross once, at the critical λ of the node. For larger λ the node is merged.
// Then changes of its descendants at a larger λ have no effect, and they are dropped.
// One sweep from the leaves to the root computes f of the root. The changes of each subtree are in a heap.
// At each node, the sweep removes the changes above the critical λ, from the largest λ down.
PricePath compute_price_path(std::span<const std::int32_t> parent, std::span<const double> costs,
                             std::int64_t leaves) {
  const auto n = static_cast<std::int64_t>(parent.size());
  struct Split {
    std::int32_t changes = kNoChange;
    std::int64_t clusters = 0;  // number of clusters if all children are merged, which is best for large λ
    double cost = 0;
  };
  std::vector<Split> splits(n - leaves);
  Heaps heaps(n - leaves);
  PricePath path;
  path.critical.assign(n, 0.0);
  std::int32_t changes = kNoChange;
  for (std::int64_t v = 0; v < n; ++v) {
    changes = kNoChange;
    if (v >= leaves) {
      Split split = splits[v - leaves];
      const auto worse = [&](double lam) {
        return split.cost + static_cast<double>(split.clusters - 1) * lam >= costs[v];
      };
      while (split.changes != kNoChange && worse(heaps[split.changes].lam)) {
        split.clusters += heaps[split.changes].clusters;
        split.cost -= heaps[split.changes].cost;
        split.changes = heaps.pop(split.changes);
      }
      const double more = std::max(0.0, costs[v] - split.cost);
      const double lam = more / static_cast<double>(split.clusters - 1);
      path.critical[v] = lam;
      const auto change = static_cast<std::int32_t>(v - leaves);
      heaps[change] = {lam, more, split.clusters - 1};
      changes = heaps.merge(change, split.changes);
    }
    if (v + 1 == n) break;
    Split& split = splits[parent[v] - leaves];
    split.changes = heaps.merge(split.changes, changes);
    split.clusters += 1;
    split.cost += costs[v];
  }

  std::vector<Change> sorted;
  heaps.for_each(changes, [&](const Change& change) { sorted.push_back(change); });
  // Compare all three fields, so that changes of equal λ are always summed in the same order.
  std::sort(sorted.begin(), sorted.end(), [](const Change& a, const Change& b) {
    return std::tie(a.lam, a.cost, a.clusters) < std::tie(b.lam, b.cost, b.clusters);
  });
  path.lams.push_back(0.0);
  path.costs.push_back(0.0);
  path.clusters.push_back(leaves);
  for (const Change& change : sorted) {
    if (change.lam > path.lams.back()) {
      path.lams.push_back(change.lam);
      path.costs.push_back(path.costs.back());
      path.clusters.push_back(path.clusters.back());
    }
    path.costs.back() += change.cost;
    path.clusters.back() -= change.clusters;
  }
  return path;
}

}  // namespace agglo
