#include "ivf/ivf.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/memory.hpp"
#include "ivf/partition.hpp"
#include "ivf/scan.hpp"
#include "ivf/tuning.hpp"
#include "neighbors/lists.hpp"
#include "neighbors/true_neighbors.hpp"
#include "points/expand.hpp"
#include "points/order.hpp"
#include "points/rows.hpp"
#include "simd/dot.hpp"

namespace agglo {
namespace {

// How it works. The points are put into cells of a few hundred (ivf/partition.hpp) and, as what is left of
// them without the centre of their cell, coded in bytes (ivf/codes.hpp). Every point visits the cells whose
// centres are closest to it, and keeps those of their members that look closest (ivf/scan.hpp); these are
// compared exactly. How many cells and how many candidates that takes is known from a sample
// (ivf/tuning.hpp), whose true lists are found first (neighbors/true_neighbors.hpp). Where no effort is
// enough, as points may be in so many small groups that cells tear them apart, smaller cells are tried, and
// then better ones. What a point finds is up to it alone: nothing is shared, so time has no say.

constexpr std::int64_t kSize = 256;    // points in a cell
constexpr std::int64_t kTuning = 128;  // points that the effort is chosen by

// Cells, their members in codes, and what visits to them take.
struct Cells {
  Cells(const Images& images, std::int64_t size, bool thorough, std::int64_t wanted, std::int64_t d,
        Metric metric, std::uint64_t seed, ThreadPool& pool, const Report& parting, const Report& coding)
      : partition(images, size, wanted + 1, thorough, metric == Metric::dot, seed, pool, parting),
        coded(images, partition, similarity(metric), pool, coding),
        plan(images.n(), wanted, size, coded.coded(), d) {
    for (int w = 0; w < pool.size(); ++w) visitors.emplace_back(images, partition, coded, similarity(metric));
  }

  const Partition partition;
  const CodedCells coded;
  std::vector<Visitor> visitors;
  EffortPlan plan;
};

// What a sample reaches with cells of one kind, and whether that is enough; the more, the better.
struct Tried {
  bool enough;
  double recall;
  std::int64_t size;
  bool thorough;
  auto operator<=>(const Tried&) const = default;
};

// Compares a point's candidates exactly and writes its list.
template <class T>
class Finish {
 public:
  Finish(const Space<T>& space, const Copies& groups, const CodedCells& coded, std::int64_t wanted,
         std::int64_t k, Neighbors& result)
      : space_(space),
        groups_(groups),
        coded_(coded),
        wanted_(wanted),
        result_(result),
        expansion_(space, groups, k) {}

  void operator()(std::int32_t place, std::span<const std::int32_t> slots) {
    const std::int32_t point = groups_.first[place];
    others_.clear();
    for (const std::int32_t slot : slots)
      if (coded_.place(slot) != place) others_.push_back(groups_.first[coded_.place(slot)]);
    if (static_cast<std::int64_t>(others_.size()) > wanted_ + kSpare) rule_out(point);
    list_.clear();
    for (std::size_t s = 0; s < others_.size(); ++s) {
      prefetch(s + 2);
      list_.push_back({space_.closeness(point, others_[s]), others_[s]});
    }
    const auto end = list_.begin() + wanted_;
    std::nth_element(list_.begin(), end - 1, list_.end());
    std::sort(list_.begin(), end);
    expansion_.write(point, {list_.begin(), end}, result_);
  }

 private:
  static constexpr std::int64_t kSpare = 6;  // candidates that are compared exactly without further ado

  // Leaves out those that are surely not among the closest, by float32 and how much it may err.
  void rule_out(std::int32_t point) {
    if constexpr (std::is_same_v<T, double>) return;  // for there is nothing faster
    uppers_.clear();
    lowers_.clear();
    const double own = slack_of(space_, point);
    for (std::size_t s = 0; s < others_.size(); ++s) {
      prefetch(s + 2);
      const double closeness = space_.quick_closeness(point, others_[s]);
      const double slack = own + slack_of(space_, others_[s]) + std::abs(closeness) * 1e-6;
      uppers_.push_back(static_cast<float>(closeness + slack));
      lowers_.push_back(static_cast<float>(closeness - slack));
    }
    const float bar = reached_by(wanted_, lowers_.data(), static_cast<std::int64_t>(lowers_.size()));
    std::size_t left = 0;
    for (std::size_t s = 0; s < others_.size(); ++s)
      if (uppers_[s] >= bar) others_[left++] = others_[s];
    others_.resize(left);
  }

  void prefetch(std::size_t s) const {
    if (s < others_.size()) agglo::prefetch(space_.points().row(others_[s]), space_.d());
  }

  const Space<T>& space_;
  const Copies& groups_;
  const CodedCells& coded_;
  const std::int64_t wanted_;
  Neighbors& result_;
  Expansion<T> expansion_;
  std::vector<std::int32_t> others_;
  std::vector<Candidate> list_;
  std::vector<float> uppers_, lowers_;
};

}  // namespace

template <class T>
Approximation nearly_nearest(const Points<T>& points, std::int64_t k, Metric metric, double recall,
                             const Effort& wish, std::span<const float> basis, std::int64_t sample,
                             std::int64_t patience, bool anyway, std::uint64_t seed, const Blas& blas,
                             ThreadPool& pool, const Report& report) {
  const std::int64_t n = points.n;
  if (n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(n));
  if (k < 1 || k >= n)
    throw std::invalid_argument("k must be in 1.." + std::to_string(n - 1) + ", got " + std::to_string(k));
  constexpr std::int64_t all = 1000;
  // Stages report on a share of the whole; one that is done again does not go back.
  std::int64_t highest = 0;
  const auto part = [&](std::int64_t from, std::int64_t to) -> Report {
    if (!report) return {};
    return [&report, &highest, from, to](std::int64_t done, std::int64_t total) {
      highest = std::max(highest, from + (to - from) * done / std::max<std::int64_t>(total, 1));
      report(highest, all);
    };
  };
  const Space<T> space(points, metric, pool);
  const Copies groups = copies(points, pool);
  const std::span<const std::int32_t> ids = groups.first;
  const std::int64_t wanted = std::min(k, static_cast<std::int64_t>(ids.size()) - 1);
  Approximation found{{}, {1, 0, 0}, wish, std::vector<std::int32_t>(n, 0)};
  const auto make_lists = [&] {
    found.neighbors = {std::vector<std::int32_t>(n * k), std::vector<float>(n * k)};
  };
  Effort& effort = found.effort;
  const std::int64_t smallest = 4 * (wanted + 1);
  effort.size = std::max(wish.size == 0 ? kSize : wish.size, smallest);
  effort.rounds = 0;
  if (wanted == 0) {
    make_lists();
    Expansion<T>(space, groups, k).write(0, {}, found.neighbors);
    return found;
  }

  const bool product = similarity(metric);
  std::mt19937_64 chance(seed);
  std::unique_ptr<Images> images;
  if (basis.empty())
    images = std::make_unique<WholeImages<T>>(space, ids);
  else
    images = std::make_unique<ProjectedImages<T>>(space, ids, basis, !product, pool, part(0, 50));
  std::unique_ptr<Cells> cells;
  const auto make_cells = [&, own = chance()](std::int64_t size, bool thorough) {
    effort.size = size;
    cells.reset();
    cells = std::make_unique<Cells>(*images, size, thorough, wanted, points.d, metric, own, pool,
                                    part(50, 200), part(200, 220));
  };
  make_cells(effort.size, false);

  const auto truth_of = [&](std::span<const std::int32_t> chosen, const Report& progress) {
    std::vector<std::int32_t> places;
    for (const std::int32_t point : chosen) places.push_back(groups.group[point]);
    Truth<T> truth(space, ids, wanted, places);
    if (!places.empty()) truth.find(cells->partition, blas.sgemm, pool, progress);
    return truth;
  };
  // One sample chooses the effort and another, which has no part in that, measures what it came to.
  const std::int64_t tuning = wish.visits == 0 ? std::min(kTuning, n) : 0;
  std::vector<std::int32_t> both = random_sample(n, tuning, chance()),
                            chosen = random_sample(n, sample, chance());
  both.insert(both.end(), chosen.begin(), chosen.end());
  std::optional<Truth<T>> truth;
  truth.emplace(truth_of(both, part(220, 260)));
  const auto learn = [&] {
    cells->plan.learn(*truth, cells->partition, cells->coded, tuning, cells->visitors, pool);
    const EffortPlan::Choice choice = cells->plan.cheapest(recall);
    return Tried{choice.enough, cells->plan.reached(choice).value, effort.size, cells->partition.thorough()};
  };
  if (tuning > 0) {
    const Tried first = learn();
    Tried best = first, last = first;
    const auto attempt = [&](std::int64_t size, bool thorough) {
      if (best.enough) return;
      make_cells(size, thorough);
      last = learn();
      best = std::max(best, last);
    };
    if (wish.size == 0 && first.size > smallest) attempt(smallest, false);
    if (!first.thorough) attempt(first.size, true);
    if (anyway && best != last) {
      make_cells(best.size, best.thorough);
      learn();
    }
  }
  images->drop();  // each is asked for once more in a round of visits, which costs less than the room
  make_lists();
  const auto near = static_cast<std::int64_t>(cells->partition.near(0).size());
  double aim = recall;
  for (bool enough = false; !enough;) {
    EffortPlan::Choice choice{std::min(wish.visits, near), wanted + 1 + std::max<std::int64_t>(8, wanted / 2),
                              false};
    if (wish.visits == 0) choice = cells->plan.cheapest(aim);
    if (tuning > 0 && !choice.enough && !anyway) {
      if (effort.rounds == 0) {
        found.recall = cells->plan.reached(choice);
        found.neighbors = {};
      }
      break;
    }
    if (cells->partition.count() == 1) choice = {1, images->n(), false};  // which is to compare all
    effort.visits = choice.visits;
    effort.kept = wish.kept == 0 ? choice.kept : std::max(wish.kept, wanted + 1);
    ++effort.rounds;
    pool.run(
        cells->partition.count(),
        [&](std::int64_t cell, int worker) {
          Finish<T> finish(space, groups, cells->coded, wanted, k, found.neighbors);
          cells->visitors[worker].visit(cell, effort.visits, effort.kept, finish);
        },
        effort.rounds == 1 ? part(300, all) : part(all, all));
    std::size_t from = tuning;
    if (effort.rounds > 1) {  // for the last sample decided that this was to be done
      chosen = random_sample(n, sample, chance());
      truth.emplace(truth_of(chosen, part(all, all)));
      from = 0;
    }
    found.recall = measured(*truth, found.neighbors, space, groups, chosen, from, k);
    enough = found.recall.value >= recall || !choice.enough || effort.rounds >= patience;
    aim += (1 - aim) / 2;
  }
  for (std::int64_t i = 0; i < n; ++i) found.cells[i] = cells->partition.home(groups.group[i]);
  return found;
}

#define AGGLO_NEARLY_NEAREST(T)                                                                        \
  template Approximation nearly_nearest(const Points<T>&, std::int64_t, Metric, double, const Effort&, \
                                        std::span<const float>, std::int64_t, std::int64_t, bool,      \
                                        std::uint64_t, const Blas&, ThreadPool&, const Report&);
AGGLO_EACH_NUMBER(AGGLO_NEARLY_NEAREST)

}  // namespace agglo
