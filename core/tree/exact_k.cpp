#include "tree/exact_k.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

namespace agglo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A set of numbers, largest runs first, each run less by `shift` than it is.
struct Numbers {
  std::vector<Run> runs{{0, 0}};
  std::int64_t shift = 0;
};

std::vector<Run> ascending(std::vector<Run>& runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  std::vector<Run> joined;
  for (const Run& run : runs) {
    if (joined.empty() || run.first > joined.back().last + 1)
      joined.push_back(run);
    else
      joined.back().last = std::max(joined.back().last, run.last);
  }
  return joined;
}

using Bits = std::vector<std::uint64_t>;

// Sets in `bits` all that are set in `more`, larger by `shift`.
void add_shifted(Bits& bits, const Bits& more, std::int64_t shift) {
  const std::size_t words = static_cast<std::size_t>(shift / 64);
  const int rest = static_cast<int>(shift % 64);
  for (std::size_t i = bits.size(); i-- > words;) {
    std::uint64_t word = more[i - words] << rest;
    if (rest && i > words) word |= more[i - words - 1] >> (64 - rest);
    bits[i] |= word;
  }
}

// The sums of a number of each, where there are so many runs that bits are better.
std::vector<Run> sums_by_bits(const std::vector<Run>& some, const std::vector<Run>& others) {
  const std::int64_t most = some.front().last + others.front().last;
  Bits bits(static_cast<std::size_t>(most / 64 + 1), 0), sums(bits.size(), 0);
  for (const Run& run : some)
    for (std::int64_t i = run.first; i <= run.last; ++i) bits[i / 64] |= std::uint64_t{1} << (i % 64);
  for (const Run& run : others) {
    Bits wide = bits;  // with all numbers up to `reach` added
    std::int64_t reach = 0;
    while (reach < run.last - run.first) {
      const std::int64_t step = std::min(reach + 1, run.last - run.first - reach);
      add_shifted(wide, Bits(wide), step);
      reach += step;
    }
    add_shifted(sums, wide, run.first);
  }
  std::vector<Run> runs;
  for (std::int64_t i = 0; i <= most; ++i)
    if (sums[i / 64] >> (i % 64) & 1) {
      if (!runs.empty() && runs.back().last == i - 1)
        runs.back().last = i;
      else
        runs.push_back({i, i});
    }
  return runs;
}

// The sums of a number of each.
std::vector<Run> sums(const std::vector<Run>& some, const std::vector<Run>& others) {
  const auto pairs = static_cast<std::int64_t>(some.size() * others.size());
  if (pairs > 64 && pairs > some.front().last + others.front().last) {
    const bool fewer = some.size() < others.size();
    return sums_by_bits(fewer ? others : some, fewer ? some : others);
  }
  std::vector<Run> runs;
  runs.reserve(static_cast<std::size_t>(pairs));
  for (const Run& a : some)
    for (const Run& b : others) runs.push_back({a.first + b.first, a.last + b.last});
  return ascending(runs);
}

}  // namespace

std::vector<Run> possible_numbers(std::span<const std::int32_t> parent, std::int64_t leaves) {
  const auto n = static_cast<std::int64_t>(parent.size());
  std::vector<Numbers> numbers(n - leaves);  // of an inner node, split: those of its children so far
  for (std::int64_t v = 0; v < n; ++v) {
    if (v < leaves) {
      if (v + 1 == n) return {{1, 1}};
      ++numbers[parent[v] - leaves].shift;
      continue;
    }
    Numbers own = std::move(numbers[v - leaves]);
    if (own.runs.back().first + own.shift == 2)
      own.runs.back().first -= 1;  // 1 and 2 are one run
    else
      own.runs.push_back({1 - own.shift, 1 - own.shift});
    if (v + 1 == n) {
      for (Run& run : own.runs) run = {run.first + own.shift, run.last + own.shift};
      std::reverse(own.runs.begin(), own.runs.end());
      return own.runs;
    }
    Numbers& all = numbers[parent[v] - leaves];
    if (all.runs.size() == 1 && all.runs[0].first == all.runs[0].last) {
      own.shift += all.runs[0].first + all.shift;
      all = std::move(own);
      continue;
    }
    for (Run& run : own.runs) run = {run.first + own.shift, run.last + own.shift};
    for (Run& run : all.runs) run = {run.first + all.shift, run.last + all.shift};
    all.runs = sums(all.runs, own.runs);
    std::reverse(all.runs.begin(), all.runs.end());
    all.shift = 0;
  }
  return {};
}

namespace {

// The least excess of a node's partitions by their number of clusters: base + more[i] for first + i of them.
struct Table {
  std::int64_t first = 0;
  double base = 0;
  std::vector<double> more;  // infinite where there is none; empty stands for one entry, 0
  bool any = true;           // false if the bound excludes every partition

  std::int64_t width() const { return more.empty() ? 1 : static_cast<std::int64_t>(more.size()); }
  double at(std::int64_t i) const { return more.empty() ? base : base + more[i]; }
};

// How many clusters a child has, by the number that it and its siblings before it have together.
struct Choice {
  std::int64_t first;
  std::vector<std::int32_t> clusters;
};

class Search {
 public:
  Search(std::span<const std::int32_t> parent, std::span<const double> costs, std::int64_t leaves,
         std::int64_t clusters, double price)
      : parent_(parent),
        n_(static_cast<std::int64_t>(parent.size())),
        leaves_(leaves),
        clusters_(clusters),
        joined_(n_),
        split_(n_ - leaves, 0.0),
        children_(n_ - leaves, 0),
        room_(n_),
        most_(n_),
        fixed_(n_) {
    for (std::int64_t v = 0; v < n_; ++v) {
      const double joined = costs[v] + price, split = v < leaves ? kInfinity : split_[v - leaves];
      const double best = std::min(joined, split);
      joined_[v] = joined - best;
      if (v >= leaves) split_[v - leaves] = split - best;
      total_ += joined;
      if (v + 1 == n_) break;
      split_[parent[v] - leaves] += best;
      ++children_[parent[v] - leaves];
    }
  }

  // More than the excess of any partition.
  double total() const { return total_; }

  // The best partition if its excess is at most `bound`, otherwise nothing.
  std::vector<std::uint8_t> run(double bound) {
    tables_.assign(n_ - leaves_, {});
    choices_.clear();
    go_down(bound);
    for (std::int64_t v = 0; v < n_; ++v) {
      if (room_[v] < 0) continue;
      Table own = table(v);
      if (v + 1 < n_) {
        add(v, own);
        continue;
      }
      const std::int64_t i = clusters_ - own.first;
      if (own.any && i >= 0 && i < own.width() && own.at(i) <= bound) return chosen();
    }
    return {};
  }

 private:
  bool splits(std::int64_t v) const {
    return v >= leaves_ && room_[v] >= split_[v - leaves_] && most_[v] >= children_[v - leaves_];
  }

  // How much excess is left for what is below a node, and how many clusters at most: negative where a node
  // is out of reach.
  void go_down(double bound) {
    room_[n_ - 1] = bound;
    most_[n_ - 1] = clusters_;
    for (std::int64_t v = n_ - 2; v >= 0; --v) {
      const std::int64_t p = parent_[v];
      room_[v] = splits(p) ? room_[p] - split_[p - leaves_] : -1.0;
      most_[v] = most_[p] - children_[p - leaves_] + 1;
    }
  }

  // The partitions of v, whose children have been added up.
  Table table(std::int64_t v) {
    Table own;
    own.first = 1;
    own.base = joined_[v];
    own.any = joined_[v] <= room_[v];
    if (!splits(v)) return own;
    Table split = std::move(tables_[v - leaves_]);
    split.base += split_[v - leaves_];
    if (!split.any) return own;
    if (!own.any) return split;
    const std::int64_t width = split.first + split.width() - 1;
    own.base = 0;
    own.more.assign(width, kInfinity);
    own.more[0] = joined_[v];
    for (std::int64_t i = 0; i < split.width(); ++i) own.more[split.first - 1 + i] = split.at(i);
    return own;
  }

  // Adds the partitions of v to those of its siblings.
  void add(std::int64_t v, const Table& own) {
    Table& all = tables_[parent_[v] - leaves_];
    all.any = all.any && own.any;
    if (!all.any) return;
    if (own.width() == 1) {
      all.first += own.first;
      all.base += own.at(0);
      fixed_[v] = static_cast<std::int32_t>(own.first);
      return;
    }
    // Beyond these there is no room: each of the siblings has one cluster at least.
    const double room = room_[v] - all.base - own.base;
    const std::int64_t first = all.first + own.first, most = most_[parent_[v]];
    const std::int64_t width = std::min(all.width() + own.width() - 1, most - first + 1);
    if (width < 1) {
      all.any = false;
      return;
    }
    std::vector<double> sums(width, kInfinity);
    Choice choice{first, std::vector<std::int32_t>(width, 0)};
    for (std::int64_t i = 0; i < std::min(all.width(), width); ++i) {
      const double base = all.more.empty() ? 0.0 : all.more[i];
      if (!(base <= room)) continue;
      for (std::int64_t j = 0; j < std::min(own.width(), width - i); ++j) {
        const double sum = base + own.more[j];
        if (sum > room || sum >= sums[i + j]) continue;
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

  // From the root down, and from a node's last child to its first, each takes its share of the clusters.
  std::vector<std::uint8_t> chosen() const {
    std::vector<std::uint8_t> joined(n_, 0);
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
      joined[v] = share == 1;
      if (share > 1) left[v - leaves_] = share;
    }
    return joined;
  }

  std::span<const std::int32_t> parent_;
  std::int64_t n_, leaves_, clusters_;
  std::vector<double> joined_, split_;  // excess of a node joined, and of an inner node split
  std::vector<std::int32_t> children_;  // their number
  std::vector<double> room_;
  std::vector<std::int64_t> most_;
  std::vector<Table> tables_;
  std::vector<std::int32_t> fixed_;  // how many clusters a child has, or, negative, the choice that says it
  std::vector<Choice> choices_;
  double total_ = 0;
};

}  // namespace

std::vector<std::uint8_t> cheapest_of(std::span<const std::int32_t> parent, std::span<const double> costs,
                                      std::int64_t leaves, std::int64_t clusters, double price,
                                      const Report& report) {
  Search search(parent, costs, leaves, clusters, price);
  const double last = 2 * search.total() + 1;  // and so more than rounding could add
  for (double bound = 1e-3 * price;; bound = bound > 0 ? 4 * bound : 1e-12 * last) {
    if (report) report(0, 1);
    std::vector<std::uint8_t> joined = search.run(std::min(bound, last));
    if (!joined.empty()) return joined;
    if (bound >= last) throw std::logic_error("no partition of a possible number of clusters");
  }
}

}  // namespace agglo
