#include "tree/price_path.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace agglo {
namespace {

constexpr std::int32_t kNone = -1;

// Where, as the price grows, a node is better joined than split: there the best partition of the node passes
// from one line to another, of fewer clusters and a higher sum of costs.
struct Change {
  double price;
  double cost;            // what is added to the sum of costs
  std::int64_t clusters;  // by how many they become fewer
};

// Heaps of changes that can be united in one step, the highest price on top: of each the first below it and
// the next beside it. None of this recurses, for a heap may be as deep as it is large.
class Heaps {
 public:
  explicit Heaps(std::size_t n) : changes_(n), below_(n, kNone), beside_(n, kNone) {}

  Change& operator[](std::int32_t i) { return changes_[i]; }

  std::int32_t united(std::int32_t a, std::int32_t b) {
    if (a == kNone) return b;
    if (b == kNone) return a;
    if (changes_[a].price < changes_[b].price) std::swap(a, b);
    beside_[b] = below_[a];
    below_[a] = b;
    return a;
  }

  // The heap without its top.
  std::int32_t rest(std::int32_t top) {
    std::int32_t pairs = kNone;  // linked through beside_, the last pair first
    for (std::int32_t a = below_[top]; a != kNone;) {
      const std::int32_t b = beside_[a];
      const std::int32_t next = b == kNone ? kNone : beside_[b];
      beside_[a] = kNone;
      if (b != kNone) beside_[b] = kNone;
      const std::int32_t pair = united(a, b);
      beside_[pair] = pairs;
      pairs = pair;
      a = next;
    }
    std::int32_t heap = kNone;
    while (pairs != kNone) {
      const std::int32_t next = beside_[pairs];
      beside_[pairs] = kNone;
      heap = united(heap, pairs);
      pairs = next;
    }
    return heap;
  }

  // Calls visit(change) for all of a heap, in no order.
  template <class Visit>
  void for_each(std::int32_t heap, const Visit& visit) const {
    std::vector<std::int32_t> waiting;
    if (heap != kNone) waiting.push_back(heap);
    while (!waiting.empty()) {
      const std::int32_t i = waiting.back();
      waiting.pop_back();
      visit(changes_[i]);
      for (std::int32_t j = below_[i]; j != kNone; j = beside_[j]) waiting.push_back(j);
    }
  }

 private:
  std::vector<Change> changes_;
  std::vector<std::int32_t> below_, beside_;
};

}  // namespace

template <class T>
std::vector<T> sums_below(std::span<const std::int32_t> parent, std::span<const T> values) {
  std::vector<T> sums(values.begin(), values.end());
  for (std::size_t v = 0; v + 1 < sums.size(); ++v) sums[parent[v]] += sums[v];
  return sums;
}

template std::vector<double> sums_below(std::span<const std::int32_t>, std::span<const double>);
template std::vector<std::int64_t> sums_below(std::span<const std::int32_t>, std::span<const std::int64_t>);

std::vector<std::uint8_t> cheapest(std::span<const std::int32_t> parent, std::span<const double> costs) {
  const std::size_t n = parent.size();
  std::vector<double> split(n, 0.0);
  std::vector<std::uint8_t> joined(n), inner(n, 0);
  for (std::size_t v = 0; v < n; ++v) {
    joined[v] = !inner[v] || costs[v] <= split[v];
    if (v + 1 == n) break;
    split[parent[v]] += joined[v] ? costs[v] : split[v];
    inner[parent[v]] = 1;
  }
  return joined;
}

// With price p a node v costs at best f_v(p) = min(costs[v] + p, sum of f over its children). The line has
// slope 1, the sum at least 2 everywhere, so they cross once, at the node's critical price. From there on the
// partition below does not matter any more, and the changes below with higher prices are gone for good. So
// one sweep upwards, with the changes of each subtree in a heap, makes the function of the root: on its way
// it undoes, from the highest price down, those changes that come after the crossing.
Path price_path(std::span<const std::int32_t> parent, std::span<const double> costs, std::int64_t leaves) {
  const auto n = static_cast<std::int64_t>(parent.size());
  struct Split {
    std::int32_t changes = kNone;
    std::int64_t clusters = 0;  // with all children joined, which is best for high prices
    double cost = 0;
  };
  std::vector<Split> splits(n - leaves);
  Heaps heaps(n - leaves);
  Path path;
  path.critical.assign(n, 0.0);
  std::int32_t changes = kNone;
  for (std::int64_t v = 0; v < n; ++v) {
    changes = kNone;
    if (v >= leaves) {
      Split split = splits[v - leaves];
      const auto worse = [&](double price) {
        return split.cost + static_cast<double>(split.clusters - 1) * price >= costs[v];
      };
      while (split.changes != kNone && worse(heaps[split.changes].price)) {
        split.clusters += heaps[split.changes].clusters;
        split.cost -= heaps[split.changes].cost;
        split.changes = heaps.rest(split.changes);
      }
      const double more = std::max(0.0, costs[v] - split.cost);
      const double price = more / static_cast<double>(split.clusters - 1);
      path.critical[v] = price;
      const auto change = static_cast<std::int32_t>(v - leaves);
      heaps[change] = {price, more, split.clusters - 1};
      changes = heaps.united(change, split.changes);
    }
    if (v + 1 == n) break;
    Split& split = splits[parent[v] - leaves];
    split.changes = heaps.united(split.changes, changes);
    split.clusters += 1;
    split.cost += costs[v];
  }

  std::vector<Change> sorted;
  heaps.for_each(changes, [&](const Change& change) { sorted.push_back(change); });
  // All three, so that the order of equal prices cannot be seen in how sums are rounded.
  std::sort(sorted.begin(), sorted.end(), [](const Change& a, const Change& b) {
    return std::tie(a.price, a.cost, a.clusters) < std::tie(b.price, b.cost, b.clusters);
  });
  path.prices.push_back(0.0);
  path.costs.push_back(0.0);
  path.clusters.push_back(leaves);
  for (const Change& change : sorted) {
    if (change.price > path.prices.back()) {
      path.prices.push_back(change.price);
      path.costs.push_back(path.costs.back());
      path.clusters.push_back(path.clusters.back());
    }
    path.costs.back() += change.cost;
    path.clusters.back() -= change.clusters;
  }
  return path;
}

}  // namespace agglo
