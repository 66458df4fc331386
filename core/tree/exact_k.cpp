#include "tree/exact_k.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

namespace agglo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A set of possible numbers of clusters, stored as ranges in descending order.
// A number n in `ranges` stands for n + shift clusters.
struct CountSet {
  std::vector<CountRange> ranges{{0, 0}};
  std::int64_t shift = 0;
};

// Sorts ranges of numbers. Merges ranges that overlap or touch.
std::vector<CountRange> sort_ranges(std::vector<CountRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CountRange& a, const CountRange& b) { return a.first < b.first; });
  std::vector<CountRange> separate;
  for (const CountRange& range : ranges) {
    if (separate.empty() || range.first > separate.back().last + 1)
      separate.push_back(range);
    else
      separate.back().last = std::max(separate.back().last, range.last);
  }
  return separate;
}

using Bits = std::vector<std::uint64_t>;

// Sets bit i + shift of `bits` for every bit i that is set in `more`.
void add_shifted(Bits& bits, const Bits& more, std::int64_t shift) {
  const std::size_t words = static_cast<std::size_t>(shift / 64);
  const int rest = static_cast<int>(shift % 64);
  for (std::size_t i = bits.size(); i-- > words;) {
    std::uint64_t word = more[i - words] << rest;
    if (rest && i > words) word |= more[i - words - 1] >> (64 - rest);
    bits[i] |= word;
  }
}

// Returns the same as add_counts (see below). Bit sets make this function faster if there are many ranges.
std::vector<CountRange> add_by_bits(const std::vector<CountRange>& some,
                                    const std::vector<CountRange>& others) {
  const std::int64_t most = some.front().last + others.front().last;
  Bits bits(static_cast<std::size_t>(most / 64 + 1), 0), sums(bits.size(), 0);
  for (const CountRange& range : some)
    for (std::int64_t i = range.first; i <= range.last; ++i) bits[i / 64] |= std::uint64_t{1} << (i % 64);
  for (const CountRange& range : others) {
    Bits wide = bits;  // all sums of a number in `bits` and a number from 0 to `reach`
    std::int64_t reach = 0;
    while (reach < range.last - range.first) {
      const std::int64_t step = std::min(reach + 1, range.last - range.first - reach);
      add_shifted(wide, Bits(wide), step);
      reach += step;
    }
    add_shifted(sums, wide, range.first);
  }
  std::vector<CountRange> ranges;
  for (std::int64_t i = 0; i <= most; ++i)
    if (sums[i / 64] >> (i % 64) & 1) {
      if (!ranges.empty() && ranges.back().last == i - 1)
        ranges.back().last = i;
      else
        ranges.push_back({i, i});
    }
  return ranges;
}

// Returns all sums of a number in `some` and a number in `others`.
std::vector<CountRange> add_counts(const std::vector<CountRange>& some,
                                   const std::vector<CountRange>& others) {
  const auto pairs = static_cast<std::int64_t>(some.size() * others.size());
  if (pairs > 64 && pairs > some.front().last + others.front().last) {
    const bool fewer = some.size() < others.size();
    return add_by_bits(fewer ? others : some, fewer ? some : others);
  }
  std::vector<CountRange> ranges;
  ranges.reserve(static_cast<std::size_t>(pairs));
  for (const CountRange& a : some)
    for (const CountRange& b : others) ranges.push_back({a.first + b.first, a.last + b.last});
  return sort_ranges(ranges);
}

}  // namespace

std::vector<CountRange> find_possible_counts(std::span<const std::int32_t> parent, std::int64_t leaves) {
  const auto n = static_cast<std::int64_t>(parent.size());
  // For each inner node: the numbers of clusters that its children so far can have together.
  std::vector<CountSet> counts(n - leaves);
  for (std::int64_t v = 0; v < n; ++v) {
    if (v < leaves) {
      if (v + 1 == n) return {{1, 1}};
      ++counts[parent[v] - leaves].shift;
      continue;
    }
    CountSet own = std::move(counts[v - leaves]);
    if (own.ranges.back().first + own.shift == 2)
      own.ranges.back().first -= 1;  // extend the range that starts at 2 by the number 1
    else
      own.ranges.push_back({1 - own.shift, 1 - own.shift});
    if (v + 1 == n) {
      for (CountRange& range : own.ranges) range = {range.first + own.shift, range.last + own.shift};
      std::reverse(own.ranges.begin(), own.ranges.end());
      return own.ranges;
    }
    CountSet& all = counts[parent[v] - leaves];
    if (all.ranges.size() == 1 && all.ranges[0].first == all.ranges[0].last) {
      own.shift += all.ranges[0].first + all.shift;
      all = std::move(own);
      continue;
    }
    for (CountRange& range : own.ranges) range = {range.first + own.shift, range.last + own.shift};
    for (CountRange& range : all.ranges) range = {range.first + all.shift, range.last + all.shift};
    all.ranges = add_counts(all.ranges, own.ranges);
    std::reverse(all.ranges.begin(), all.ranges.end());
    all.shift = 0;
  }
  return {};
}

namespace {

// The smallest excess (see exact_k.hpp) of the partitions of one node, for each number of clusters.
// A partition into first + i clusters has an excess of at least base + more[i].
struct ExcessTable {
  std::int64_t first = 0;
  double base = 0;
  std::vector<double> more;  // infinity if there is no partition; an empty vector means {0}
  bool any = true;           // whether the excess of any partition is within the bound

  std::int64_t width() const { return more.empty() ? 1 : static_cast<std::int64_t>(more.size()); }
  double at(std::int64_t i) const { return more.empty() ? base : base + more[i]; }
};

// The number of clusters that one child should have, given the total for this child and its earlier siblings.
// If the total is first + i clusters, this child has clusters[i] clusters.
struct Choice {
  std::int64_t first;
  std::vector<std::int32_t> clusters;
};

class Search {
 public:
  Search(std::span<const std::int32_t> parent, std::span<const double> costs, std::int64_t leaves,
         std::int64_t clusters, double lam)
      : parent_(parent),
        n_(static_cast<std::int64_t>(parent.size())),
        leaves_(leaves),
        clusters_(clusters),
        merged_(n_),
        split_(n_ - leaves, 0.0),
        children_(n_ - leaves, 0),
        budget_(n_),
        max_clusters_(n_),
        fixed_(n_) {
    for (std::int64_t v = 0; v < n_; ++v) {
      const double merged = costs[v] + lam, split = v < leaves ? kInfinity : split_[v - leaves];
      const double best = std::min(merged, split);
      merged_[v] = merged - best;
      if (v >= leaves) split_[v - leaves] = split - best;
      total_ += merged;
      if (v + 1 == n_) break;
      split_[parent[v] - leaves] += best;
      ++children_[parent[v] - leaves];
    }
  }

  // Returns a number that is larger than the excess of any partition.
  double total() const { return total_; }

  // Returns the cheapest partition if its excess is at most `bound`. Otherwise returns an empty vector.
  std::vector<std::uint8_t> run(double bound) {
    tables_.assign(n_ - leaves_, {});
    choices_.clear();
    set_budgets(bound);
    for (std::int64_t v = 0; v < n_; ++v) {
      if (budget_[v] < 0) continue;
      ExcessTable own = build_table(v);
      if (v + 1 < n_) {
        add_to_siblings(v, own);
        continue;
      }
      const std::int64_t i = clusters_ - own.first;
      if (own.any && i >= 0 && i < own.width() && own.at(i) <= bound) return select_nodes();
    }
    return {};
  }

 private:
  bool splits(std::int64_t v) const {
    return v >= leaves_ && budget_[v] >= split_[v - leaves_] && max_clusters_[v] >= children_[v - leaves_];
  }

  // For each node, computes the largest allowed excess and the largest allowed number of clusters.
  // If the node cannot occur in a partition with excess <= bound, its largest excess is negative.
  void set_budgets(double bound) {
    budget_[n_ - 1] = bound;
    max_clusters_[n_ - 1] = clusters_;
    for (std::int64_t v = n_ - 2; v >= 0; --v) {
      const std::int64_t p = parent_[v];
      budget_[v] = splits(p) ? budget_[p] - split_[p - leaves_] : -1.0;
      max_clusters_[v] = max_clusters_[p] - children_[p - leaves_] + 1;
    }
  }

  // Builds the excess table of v from the combined excess table of its children.
  ExcessTable build_table(std::int64_t v) {
    ExcessTable own;
    own.first = 1;
    own.base = merged_[v];
    own.any = merged_[v] <= budget_[v];
    if (!splits(v)) return own;
    ExcessTable split = std::move(tables_[v - leaves_]);
    split.base += split_[v - leaves_];
    if (!split.any) return own;
    if (!own.any) return split;
    const std::int64_t width = split.first + split.width() - 1;
    own.base = 0;
    own.more.assign(width, kInfinity);
    own.more[0] = merged_[v];
    for (std::int64_t i = 0; i < split.width(); ++i) own.more[split.first - 1 + i] = split.at(i);
    return own;
  }

  // Adds the excess table of v to the combined excess table of its siblings.
  void add_to_siblings(std::int64_t v, const ExcessTable& own) {
    ExcessTable& all = tables_[parent_[v] - leaves_];
    all.any = all.any && own.any;
    if (!all.any) return;
    if (own.width() == 1) {
      all.first += own.first;
      all.base += own.at(0);
      fixed_[v] = static_cast<std::int32_t>(own.first);
      return;
    }
    // Limit the number of clusters of all siblings together to max_clusters_ of the parent.
    const double budget = budget_[v] - all.base - own.base;
    const std::int64_t first = all.first + own.first, most = max_clusters_[parent_[v]];
    const std::int64_t width = std::min(all.width() + own.width() - 1, most - first + 1);
    if (width < 1) {
      all.any = false;
      return;
    }
    std::vector<double> sums(width, kInfinity);
    Choice choice{first, std::vector<std::int32_t>(width, 0)};
    for (std::int64_t i = 0; i < std::min(all.width(), width); ++i) {
      const double base = all.more.empty() ? 0.0 : all.more[i];
      if (!(base <= budget)) continue;
      for (std::int64_t j = 0; j < std::min(own.width(), width - i); ++j) {
        const double sum = base + own.more[j];
        if (sum > budget || sum >= sums[i + j]) continue;
        sums[i + j] = sum;
        choice.clusters[i + j] = static_cast<std::int32_t>(own.first + j);
      }
    }
    const auto finite = [](double x) { return x < kInfinity; };
    const auto from = std::find_if(sums.begin(), sums.end(), finite);
    const auto to = std::find_if(sums.rbegin(), std::make_reverse_iterator(from), finite).base();
    if (from == to) {
      all.any = false;
      return;
    }
    all.first = first + (from - sums.begin());
    all.base += own.base;
    all.more.assign(from, to);
    choices_.push_back(std::move(choice));
    fixed_[v] = -static_cast<std::int32_t>(choices_.size());
  }

  // Selects the nodes of the cheapest partition.
  // From the root down, the number of clusters of a node is divided among its children, last child first.
  std::vector<std::uint8_t> select_nodes() const {
    std::vector<std::uint8_t> merged(n_, 0);
    std::vector<std::int64_t> left(n_ - leaves_, 0);
    for (std::int64_t v = n_ - 1; v >= 0; --v) {
      std::int64_t share = clusters_;
      if (v + 1 < n_) {
        std::int64_t& all = left[parent_[v] - leaves_];
        if (all == 0) continue;
        const Choice* choice = fixed_[v] < 0 ? &choices_[-fixed_[v] - 1] : nullptr;
        share = choice ? choice->clusters[all - choice->first] : fixed_[v];
        all -= share;
      }
      merged[v] = share == 1;
      if (share > 1) left[v - leaves_] = share;
    }
    return merged;
  }

  std::span<const std::int32_t> parent_;
  std::int64_t n_, leaves_, clusters_;
  // merged_[v] is the excess that node v adds if it is merged.
  // split_[v - leaves_] is the excess that inner node v adds if it is split.
  std::vector<double> merged_, split_;
  std::vector<std::int32_t> children_;      // number of children of each inner node
  std::vector<double> budget_;              // largest allowed excess of each node
  std::vector<std::int64_t> max_clusters_;  // largest allowed number of clusters of each node
  std::vector<ExcessTable> tables_;         // combined excess table of the children of each inner node
  // The number of clusters of each node. If it depends on the siblings, -1 - index in choices_.
  std::vector<std::int32_t> fixed_;
  std::vector<Choice> choices_;
  double total_ = 0;
};

}  // namespace

std::vector<std::uint8_t> select_k_nodes(std::span<const std::int32_t> parent, std::span<const double> costs,
                                         std::int64_t leaves, std::int64_t clusters, double lam,
                                         const Report& report) {
  Search search(parent, costs, leaves, clusters, lam);
  const double last = 2 * search.total() + 1;  // larger than any excess, in spite of rounding errors
  for (double bound = 1e-3 * lam;; bound = bound > 0 ? 4 * bound : 1e-12 * last) {
    if (report) report(0, 1);
    std::vector<std::uint8_t> merged = search.run(std::min(bound, last));
    if (!merged.empty()) return merged;
    if (bound >= last) throw std::logic_error("found no partition into a possible number of clusters");
  }
}

}  // namespace agglo
