#include "tree/condense.hpp"

#include <algorithm>
#include <limits>

#include "tree/pairing_heap.hpp"

namespace agglo {
namespace {

// The minimal cost of a subtree, as a function of the level x of the lowest kept ancestor above it.
//
// The function is concave and piecewise linear, and it never decreases.
// Each breakpoint belongs to one node. From the level of the breakpoint on, keeping this node costs less.
// At a breakpoint, the slope of the function decreases.
// At its left end, the function has the value `value` and the slope `slope`.
// To the right of all breakpoints, the function is base + growth * x.
struct Cost {
  double value = 0, slope = 0;
  double base = 0, growth = 0;
  // The tops of two heaps of breakpoints: one with the lowest level on top, one with the highest level on
  // top.
  std::int32_t lowest = -1, highest = -1;
};

// Compares breakpoints by level. If `sign` is 1, the lowest level comes first. If `sign` is -1, the highest
// level comes first.
struct CompareLevels {
  const std::vector<double>& levels;
  double sign;
  bool operator()(std::int32_t a, std::int32_t b) const { return sign * levels[a] < sign * levels[b]; }
};

class Selection {
 public:
  Selection(std::span<const std::int32_t> parent, const CondenseCosts& costs)
      : parent_(parent),
        costs_(costs),
        keep_from_(parent.size(), std::numeric_limits<double>::infinity()),
        fall_(parent.size(), 0.0),
        ascending_(parent.size(), {keep_from_, 1}),
        descending_(parent.size(), {keep_from_, -1}) {}

  std::vector<std::uint8_t> run() {
    const std::size_t n = parent_.size();
    std::vector<Cost> sums(n);
    for (std::size_t v = 0; v + 1 < n; ++v) {
      Cost& cost = sums[v];
      add_merge(cost, static_cast<std::int32_t>(v));
      const std::size_t above = parent_[v];
      move_left_end(cost, costs_.level[v], costs_.level[above]);
      add(sums[above], cost);
    }
    std::vector<double> level_above(n);  // level of each node if it is kept, else of its lowest kept ancestor
    std::vector<std::uint8_t> kept(n, 0);
    for (std::size_t v = n; v-- > 0;) {
      kept[v] = v + 1 == n || level_above[parent_[v]] > keep_from_[v];
      level_above[v] = kept[v] ? costs_.level[v] : level_above[parent_[v]];
    }
    return kept;
  }

 private:
  // Turns `cost` into the function of node v. Before the call, `cost` is the sum of the functions of its
  // children. Also sets keep_from_[v]: if the level of the lowest kept ancestor is above this level, keeping
  // v costs less.
  void add_merge(Cost& cost, std::int32_t v) {
    cost.slope += costs_.weight[v];
    cost.growth += costs_.weight[v];
    cost.base -= costs_.weight[v] * costs_.level[v];
    if (!costs_.allowed[v]) return;
    const double if_kept = cost.value + costs_.price[v];
    // If v is kept, the cost is the constant `if_kept`. Where the function is larger, this constant replaces
    // it.
    for (;;) {
      while (cost.highest >= 0 && is_removed(cost.highest)) cost.highest = descending_.pop(cost.highest);
      if (cost.highest < 0) break;
      const double x = keep_from_[cost.highest], fall = fall_[cost.highest];
      if (cost.base + cost.growth * x < if_kept) break;
      cost.base -= fall * x;
      cost.growth += fall;
      remove(cost.highest);
      cost.highest = descending_.pop(cost.highest);
    }
    if (cost.highest < 0) {  // if no breakpoint is left, remove the rounding errors of earlier sums
      cost.growth = cost.slope;
      cost.base = cost.value - cost.slope * costs_.level[v];
    }
    if (!(cost.growth > 0)) return;
    keep_from_[v] = std::max(costs_.level[v], (if_kept - cost.base) / cost.growth);
    fall_[v] = cost.growth;
    cost.base = if_kept;
    cost.growth = 0;
    cost.lowest = ascending_.merge(cost.lowest, v);
    cost.highest = descending_.merge(cost.highest, v);
  }

  // Moves the left end of a cost function from level `x` to level `end`. Breakpoints up to `end` are removed.
  void move_left_end(Cost& cost, double x, double end) {
    for (;;) {
      while (cost.lowest >= 0 && is_removed(cost.lowest)) cost.lowest = ascending_.pop(cost.lowest);
      if (cost.lowest < 0 || keep_from_[cost.lowest] > end) break;
      cost.value += cost.slope * (keep_from_[cost.lowest] - x);
      cost.slope = std::max(0.0, cost.slope - fall_[cost.lowest]);
      x = keep_from_[cost.lowest];
      remove(cost.lowest);
      cost.lowest = ascending_.pop(cost.lowest);
    }
    if (cost.lowest < 0) cost.slope = cost.growth;  // removes rounding errors of earlier differences
    cost.value += cost.slope * (end - x);
  }

  void add(Cost& sum, const Cost& cost) {
    sum.value += cost.value;
    sum.slope += cost.slope;
    sum.base += cost.base;
    sum.growth += cost.growth;
    sum.lowest = ascending_.merge(sum.lowest, cost.lowest);
    sum.highest = descending_.merge(sum.highest, cost.highest);
  }

  // A breakpoint that is removed from one heap stays in the other heap until it is on top of that heap.
  void remove(std::int32_t v) { fall_[v] = -1; }
  bool is_removed(std::int32_t v) const { return fall_[v] < 0; }

  std::span<const std::int32_t> parent_;
  const CondenseCosts& costs_;
  // Each node is kept if the level of its lowest kept ancestor is above this level.
  std::vector<double> keep_from_;
  std::vector<double> fall_;  // decrease of the slope at the breakpoint of each node; -1 if removed
  PairingHeaps<CompareLevels> ascending_, descending_;
};

}  // namespace

std::vector<std::uint8_t> select_kept_nodes(std::span<const std::int32_t> parent,
                                            const CondenseCosts& costs) {
  return Selection(parent, costs).run();
}

}  // namespace agglo
