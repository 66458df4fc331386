#include "ivf/ivf.hpp"

#include <algorithm>
#include <compare>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "ivf/partition.hpp"
#include "ivf/rerank.hpp"
#include "ivf/scan.hpp"
#include "ivf/tuning.hpp"
#include "points/duplicates.hpp"
#include "points/expand.hpp"
#include "points/rows.hpp"

namespace agglo {
namespace {

// How the search works:
//  1. Partition the points into inverted lists of a few hundred points (ivf/partition.hpp).
//     The residual of a point is its row minus the centroid of its list.
//     Encode the residual of each point as int8 numbers (simd/codes.hpp).
//  2. Find the true neighbours of a sample of points (neighbors/recall.hpp).
//     Choose n_probes and n_candidates so that this sample reaches the recall (ivf/tuning.hpp).
//  3. For every point, scan the inverted lists with the nearest centroids (ivf/scan.hpp).
//     Re-rank the candidates with the largest scores by exact similarity (ivf/rerank.hpp).
//  4. Measure the recall on another sample.
//     If the recall is too low, choose parameters for a higher recall and repeat step 3.
// If no number of probes in step 2 reaches the recall, the lists may cut through clusters.
// The search then tries smaller lists, and a more thorough partition.
// If the goal does not accept a lower recall, the caller can search exactly instead.
// So the search stops before step 3 if an exact search is estimated to be cheaper.
// A scan shares no state between points, so results do not depend on the number of threads.

constexpr std::int64_t kListSize = 256;  // default number of points per inverted list
constexpr std::int64_t kTuning = 128;    // points in the sample that tunes the parameters
// A partition costs about 8,000 nanoseconds per point. If the first partition does not reach the recall, two
// more partitions may be tried. If an exact search costs less than kMinRetryCost nanoseconds per point, these
// attempts are not worthwhile.
constexpr double kMinRetryCost = 40e3;

// The inverted lists with their int8 codes, one scanner per worker, and the tuner of the parameters.
struct IvfLists {
  IvfLists(const RowSource& source, std::int64_t size, bool thorough, std::int64_t wanted, std::int64_t d,
           Metric metric, std::uint64_t seed, ThreadPool& pool, const Report& on_partition,
           const Report& on_coding)
      : partition(source, size, wanted + 1, thorough, metric == Metric::dot, seed, pool, on_partition),
        coded(source, partition, is_similarity(metric), pool, on_coding),
        tuner(source.n(), wanted, size, coded.width(), d) {
    for (int w = 0; w < pool.size(); ++w)
      scanners.emplace_back(source, partition, coded, is_similarity(metric));
  }

  const Partition partition;
  const CodedLists coded;
  std::vector<IvfScanner> scanners;
  ProbeTuner tuner;
};

// The recall of the tuning sample for one partition. By operator<=>, a better trial is larger.
struct Trial {
  bool is_enough;
  double recall;
  std::int64_t size;
  bool thorough;
  auto operator<=>(const Trial&) const = default;
};

}  // namespace

IvfResult ivf_neighbors(const AnyPoints& points, std::int64_t k, Metric metric, const IvfParams& given,
                        const RecallGoal& goal, std::span<const float> basis, std::uint64_t seed,
                        Gemm<float>* sgemm, ThreadPool& pool, const Report& report) {
  const std::int64_t n = points.n;
  if (n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(n));
  if (k < 1 || k >= n)
    throw std::invalid_argument("k must be in 1.." + std::to_string(n - 1) + ", got " + std::to_string(k));
  constexpr std::int64_t all = 1000;
  // Each stage reports a fixed part of the total progress. If a stage is repeated, progress does not fall.
  std::int64_t highest = 0;
  const auto part = [&](std::int64_t from, std::int64_t to) -> Report {
    if (!report) return {};
    return [&report, &highest, from, to](std::int64_t done, std::int64_t total) {
      highest = std::max(highest, from + (to - from) * done / std::max<std::int64_t>(total, 1));
      report(highest, all);
    };
  };
  const Space space(points, metric, pool);
  const Duplicates duplicates = find_duplicates(points, pool);
  const std::span<const std::int32_t> ids = duplicates.first;
  const std::int64_t wanted = std::min(k, static_cast<std::int64_t>(ids.size()) - 1);
  IvfResult found{{}, {1, 0, 0}, given, std::vector<std::int32_t>(n, 0)};
  const auto allocate_result = [&] {
    found.neighbors = {std::vector<std::int32_t>(n * k), std::vector<float>(n * k)};
  };
  IvfParams& params = found.params;
  const std::int64_t min_size = 4 * (wanted + 1);
  params.list_size = std::max(given.list_size == 0 ? kListSize : given.list_size, min_size);
  params.n_passes = 0;
  if (wanted == 0) {
    allocate_result();
    DuplicateExpansion(space, duplicates, k).write(0, {}, found.neighbors);
    return found;
  }

  const bool product = is_similarity(metric);
  const double exact_cost = estimate_exact_cost(static_cast<std::int64_t>(ids.size()), points.d);
  std::mt19937_64 rng(seed);
  std::unique_ptr<RowSource> source;
  if (basis.empty())
    source = std::make_unique<FullRows>(space, ids);
  else
    source = std::make_unique<ProjectedRows>(space, ids, basis, !product, pool, part(0, 50));
  std::unique_ptr<IvfLists> lists;
  const auto build_lists = [&, own = rng()](std::int64_t size, bool thorough) {
    params.list_size = size;
    lists.reset();
    lists = std::make_unique<IvfLists>(*source, size, thorough, wanted, points.d, metric, own, pool,
                                       part(50, 200), part(200, 220));
  };
  build_lists(params.list_size, false);

  const auto find_truth = [&](std::span<const std::int32_t> chosen, const Report& progress) {
    std::vector<std::int32_t> positions;
    for (const std::int32_t point : chosen) positions.push_back(duplicates.inverse[point]);
    return TrueNeighbors(space, ids, wanted, std::move(positions), sgemm, pool, progress);
  };
  // One sample tunes the parameters. The recall is measured on another sample, so that it is unbiased.
  const std::int64_t tuning = given.n_probes == 0 ? std::min(kTuning, n) : 0;
  std::vector<std::int32_t> both = random_sample(n, tuning, rng()),
                            chosen = random_sample(n, goal.sample, rng());
  both.insert(both.end(), chosen.begin(), chosen.end());
  std::optional<TrueNeighbors> truth;
  truth.emplace(find_truth(both, part(220, 260)));
  const auto try_lists = [&] {
    lists->tuner.measure_sample(*truth, lists->partition, lists->coded, tuning, lists->scanners, pool);
    const ProbeTuner::Choice choice = lists->tuner.choose(goal.recall);
    return Trial{choice.is_enough, lists->tuner.sample_recall(choice).value, params.list_size,
                 lists->partition.is_thorough()};
  };
  if (tuning > 0) {
    const Trial first = try_lists();
    Trial best = first, last = first;
    const auto attempt = [&](std::int64_t size, bool thorough) {
      if (best.is_enough) return;
      build_lists(size, thorough);
      last = try_lists();
      best = std::max(best, last);
    };
    if (goal.accept_lower || exact_cost >= kMinRetryCost) {
      if (given.list_size == 0 && first.size > min_size) attempt(min_size, false);
      if (!first.thorough) attempt(first.size, true);
    }
    if (goal.accept_lower && best != last) {
      build_lists(best.size, best.thorough);
      try_lists();
    }
  }
  source->drop();  // a scan reads every row only once, so stored rows would not save time
  allocate_result();
  const auto n_nearest = static_cast<std::int64_t>(lists->partition.nearest(0).size());
  double target = goal.recall;  // the recall that the tuning sample has to reach
  for (bool is_enough = false; !is_enough;) {
    ProbeTuner::Choice choice{std::min(given.n_probes, n_nearest),
                              wanted + 1 + std::max<std::int64_t>(8, wanted / 2), false, 0};
    if (given.n_probes == 0) choice = lists->tuner.choose(target);
    const bool is_worthwhile = choice.is_enough && choice.cost < exact_cost;
    if (tuning > 0 && !is_worthwhile && !goal.accept_lower) {
      if (params.n_passes == 0) {
        found.recall = lists->tuner.sample_recall(choice);
        found.neighbors = {};
      }
      break;
    }
    if (lists->partition.count() == 1)
      choice = {1, source->n(), false, 0};  // with only one list, compare all pairs
    params.n_probes = choice.n_probes;
    params.n_candidates =
        given.n_candidates == 0 ? choice.n_candidates : std::max(given.n_candidates, wanted + 1);
    ++params.n_passes;
    pool.run(
        lists->partition.count(),
        [&](std::int64_t list, int worker) {
          Reranker reranker(space, wanted);
          DuplicateExpansion expansion(space, duplicates, k);
          const auto rerank = [&](std::int32_t position, std::span<const std::int32_t> slots) {
            reranker.clear();
            for (const std::int32_t slot : slots)
              if (lists->coded.position(slot) != position) reranker.add(ids[lists->coded.position(slot)]);
            const std::int32_t point = ids[position];
            expansion.write(point, reranker.rank(point, space.square(point), space.has_quick_products()),
                            found.neighbors);
          };
          lists->scanners[worker].scan(list, params.n_probes, params.n_candidates, rerank);
        },
        params.n_passes == 1 ? part(300, all) : part(all, all));
    std::size_t from = tuning;
    if (params.n_passes > 1) {  // the previous sample is biased, because its low recall caused this pass
      chosen = random_sample(n, goal.sample, rng());
      truth.emplace(find_truth(chosen, part(all, all)));
      from = 0;
    }
    found.recall = measure_recall(*truth, found.neighbors, space, duplicates, chosen, from, k);
    is_enough =
        found.recall.value >= goal.recall || !choice.is_enough || params.n_passes >= goal.max_attempts;
    target += (1 - target) / 2;
  }
  for (std::int64_t i = 0; i < n; ++i) found.lists[i] = lists->partition.list(duplicates.inverse[i]);
  return found;
}

}  // namespace agglo
