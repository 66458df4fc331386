#include "paper/exemplars.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "ivf/assign.hpp"
#include "paper/local_search.hpp"
#include "paper/relaxation.hpp"
#include "simd/dot.hpp"

namespace agglo::paper {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::int64_t kColumns = 1024;  // columns in a chunk of work
constexpr int kSteps = 30;               // of the prices between two comparisons with all points
constexpr int kSweeps = 50;              // over the columns, per step
constexpr double kLittle = 0.1;  // sweeps end if shares move by less than this part of the error of the sums
constexpr double kIdle = 0.5;    // of λ: a column without shares that pays less is removed
constexpr double kAlone = 1.01;  // of λ: the most that a point may pay
constexpr double kLoose = 1e-2;  // error of the sums of shares at which steps end, in the first round
constexpr double kTight = 1e-9;  // and in the last rounds

template <class T>
class Solver {
 public:
  Solver(const Points<T>& points, std::span<const double> weights, const ExemplarPlan& plan,
         Gemm<float>* sgemm, ThreadPool& pool, const Report& report)
      : points_(points),
        weights_(weights),
        plan_(plan),
        pool_(pool),
        report_(report),
        scan_(points, sgemm, pool),
        centers_(points.data, points.data + points.n * points.d),
        scratch_(pool.size()),
        price_(points.n),
        sum_(points.n, 1.0),
        paid_(points.n),
        everyone_(index_range(0, points.n)) {}

  Exemplars run(std::span<const std::int32_t> seeds, std::span<const std::int32_t> labels) {
    set_seeds(seeds, labels);
    Exemplars result;
    result.converged = false;
    while (!result.converged && static_cast<std::int64_t>(result.history.size()) < plan_.max_iter) {
      done_ = static_cast<std::int64_t>(result.history.size());
      for (int i = 0; i < kSteps && step() > tolerance_; ++i)
        if (report_) report_(done_, plan_.max_iter);
      tolerance_ = std::max(tolerance_ / 2, kTight);
      update_columns();
      relaxed_ = std::min(relaxed_, compute_relaxed_value(columns_, sum_, weights_, plan_.lam));
      round_shares();
      result.history.push_back(cost_);
      result.converged = std::min(relaxed_, cost_) - bound_ <= plan_.tol * std::min(relaxed_, cost_);
    }
    result.cost = cost_;
    result.exemplars = std::move(open_);
    result.labels = std::move(nearest_);
    result.relaxed = std::min(relaxed_, cost_);       // exemplars are also a solution of the relaxation
    result.bound = std::min(bound_, result.relaxed);  // it can be larger by rounding only
    return result;
  }

 private:
  Report report_round() const {
    return [this](std::int64_t, std::int64_t) {
      if (report_) report_(done_, plan_.max_iter);
    };
  }

  // Starts with the seeds as exemplars, and with prices at which the points of each just pay for it.
  void set_seeds(std::span<const std::int32_t> seeds, std::span<const std::int32_t> labels) {
    std::vector<double> weight(seeds.size(), 0.0);
    for (std::int64_t i = 0; i < points_.n; ++i) weight[labels[i]] += weights_[i];
    double total = 0, mean = 0;
    for (std::int64_t i = 0; i < points_.n; ++i) {
      const std::int32_t seed = seeds[labels[i]];
      const double square = squared(i, seed);
      price_[i] = std::min(square + plan_.lam / weight[labels[i]], plan_.lam / weights_[i]);
      mean += weights_[i] * price_[i];
      total += weights_[i];
    }
    rho_ = mean / total;
    std::vector<std::int32_t> ids(seeds.begin(), seeds.end());
    columns_ = generate_columns(ids);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      Column& column = columns_[c];
      column.shares.assign(column.rows.size(), 0.0);
      for (std::size_t s = 0; s < column.rows.size(); ++s)
        if (labels[column.rows[s]] == static_cast<std::int32_t>(c)) column.shares[s] = 1;
      column.largest = 1;
    }
    sum_shares();
  }

  double squared(std::int64_t i, std::int64_t j) const {
    return squared_distance(centers_.data() + i * points_.d, centers_.data() + j * points_.d, points_.d);
  }

  // Recomputes the sums of shares, so that rounding errors do not accumulate.
  void sum_shares() {
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (const Column& column : columns_)
      for (std::size_t s = 0; s < column.rows.size(); ++s) sum_[column.rows[s]] += column.shares[s];
  }

  // Calls visit(i, index of j in ids, squared distance) for all i and all j in ids nearer than reach(i). Each
  // column is visited in order of i; columns of different chunks are visited in parallel.
  template <class Reach, class Visit>
  void for_each_near_pair(std::span<const std::int32_t> ids, const Reach& reach, const Visit& visit) {
    pool_.ranges(
        static_cast<std::int64_t>(ids.size()), kColumns,
        [&](std::int64_t first, std::int64_t last, int worker) {
          for (std::int64_t top = 0; top < points_.n; top += scan_.block()) {
            const auto rows = std::span(everyone_).subspan(top, std::min(scan_.block(), points_.n - top));
            scan_.pairs(
                rows, centers_.data(), ids.subspan(first, last - first), false, scratch_[worker],
                [&](std::int64_t r) { return reach(rows[r]); },
                [&](std::int64_t r, std::int64_t c, double square) {
                  if (square < reach(rows[r])) visit(rows[r], first + c, square);
                });
          }
        },
        report_round());
  }

  // Generates columns without shares, with all rows that could have one at prices near the current ones.
  std::vector<Column> generate_columns(std::span<const std::int32_t> ids) {
    std::vector<Column> columns(ids.size());
    for_each_near_pair(
        ids, [&](std::int64_t i) { return price_[i] + rho_; },
        [&](std::int64_t i, std::int64_t c, double square) {
          columns[c].rows.push_back(static_cast<std::int32_t>(i));
          columns[c].squares.push_back(square);
        });
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].id = ids[c];
      columns[c].shares.assign(columns[c].rows.size(), 0.0);
    }
    return columns;
  }

  // Sweeps over the columns until shares hardly move, then updates the prices once. Returns the largest error
  // of a sum of shares. (To update prices after every sweep is faster where it converges, but may cycle.)
  double step() {
    double error = 0;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      double moved = 0;
      for (std::size_t c = 0; c < columns_.size(); ++c)
        moved = std::max(moved, update(columns_[sweep % 2 == 0 ? c : columns_.size() - 1 - c]));
      error = 0;
      for (const double sum : sum_) error = std::max(error, std::abs(1 - sum));
      if (moved <= std::max(kLittle * error, tolerance_)) break;
    }
    // No solution of the dual has a price below 0, or above what a point pays as its own exemplar. A little
    // more is allowed, because only a column that pays more than λ is generated.
    for (std::int64_t i = 0; i < points_.n; ++i)
      price_[i] = std::clamp(price_[i] + rho_ * (1 - sum_[i]), 0.0, kAlone * plan_.lam / weights_[i]);
    return error;
  }

  // Optimizes the shares of a column while all others are fixed: each row takes what it wants, up to a level.
  // The level is such that the sum of what is cut off pays for the exemplar, λ / rho. Returns the largest
  // change.
  double update(Column& column) {
    const double pay = plan_.lam / rho_;
    wants_.resize(column.rows.size());
    double sum = 0, weight = 0;
    for (std::size_t s = 0; s < column.rows.size(); ++s) {
      const std::int32_t i = column.rows[s];
      const double want = 1 - (sum_[i] - column.shares[s]) + (price_[i] - column.squares[s]) / rho_;
      wants_[s] = want;
      if (want <= 0) continue;
      sum += weights_[i] * want;
      weight += weights_[i];
    }
    double level = 0, moved = 0;
    if (sum > pay) level = find_water_level(column.rows, wants_, weights_, pay, sum, weight);
    column.largest = 0;
    for (std::size_t s = 0; s < column.rows.size(); ++s) {
      const double share = std::clamp(wants_[s], 0.0, level);
      moved = std::max(moved, std::abs(share - column.shares[s]));
      sum_[column.rows[s]] += share - column.shares[s];
      column.shares[s] = share;
      column.largest = std::max(column.largest, share);
    }
    return moved;
  }

  // Computes what all columns pay at the current prices. Updates the lower bound, and adds columns that pay.
  void update_columns() {
    std::fill(paid_.begin(), paid_.end(), 0.0);
    for_each_near_pair(
        everyone_, [&](std::int64_t i) { return price_[i]; },
        [&](std::int64_t i, std::int64_t j, double square) {
          paid_[j] += weights_[i] * (price_[i] - square);
        });
    std::vector<std::int32_t> paying;
    double most = plan_.lam;
    for (std::int64_t j = 0; j < points_.n; ++j) {
      most = std::max(most, paid_[j]);
      if (paid_[j] > plan_.lam) paying.push_back(static_cast<std::int32_t>(j));
    }
    // Scaled down, the prices satisfy the dual, because what a column pays is convex in the scale and 0 at 0.
    double sum = 0;
    for (std::int64_t i = 0; i < points_.n; ++i) sum += weights_[i] * price_[i];
    bound_ = std::max(bound_, sum * (plan_.lam / most));

    const auto most_first = [&](std::int32_t a, std::int32_t b) {
      return std::pair(-paid_[a], a) < std::pair(-paid_[b], b);
    };
    std::sort(paying.begin(), paying.end(), most_first);
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(256, points_.n / 8));
    const bool all = paying.size() <= room;
    if (!all) paying.resize(room);
    std::vector<Column> found = generate_columns(paying);
    if (all) improve_bound(found);
    select_columns(found);
  }

  // Improves the lower bound: lowers prices only as far as the columns that pay too much require. `paying`
  // must have all such columns.
  void improve_bound(const std::vector<Column>& paying) {
    std::vector<double> lowered = price_;
    for (const Column& column : paying) {
      wants_.resize(column.rows.size());
      double sum = 0, weight = 0;
      for (std::size_t s = 0; s < column.rows.size(); ++s) {
        const std::int32_t i = column.rows[s];
        wants_[s] = price_[i] - column.squares[s];
        if (wants_[s] <= 0) continue;
        sum += weights_[i] * wants_[s];
        weight += weights_[i];
      }
      if (sum <= plan_.lam) continue;
      const double level =
          find_water_level(column.rows, wants_, weights_, plan_.lam, sum, weight) * (1 + 1e-12);
      for (std::size_t s = 0; s < column.rows.size(); ++s) {
        if (wants_[s] <= 0) continue;
        const std::int32_t i = column.rows[s];
        lowered[i] = std::min(lowered[i], std::max(price_[i] - level, column.squares[s]));
      }
    }
    double sum = 0;
    for (std::int64_t i = 0; i < points_.n; ++i) sum += weights_[i] * lowered[i];
    bound_ = std::max(bound_, sum);
  }

  // Selects the columns of the next sweeps: those with shares, with the rows that the current prices allow,
  // and new ones that pay even without the points of new columns before them.
  void select_columns(std::vector<Column>& paying) {
    std::vector<std::int32_t> ids;
    std::vector<Column> old;
    for (Column& column : columns_) {
      if (column.largest == 0 && paid_[column.id] < kIdle * plan_.lam) continue;
      ids.push_back(column.id);
      old.push_back(std::move(column));
    }
    columns_ = generate_columns(ids);
    std::vector<char> present(points_.n, false);
    for (std::size_t c = 0; c < old.size(); ++c) {
      std::size_t from = 0;  // rows are in ascending order
      present[ids[c]] = true;
      columns_[c].largest = old[c].largest;
      for (std::size_t s = 0; s < columns_[c].rows.size(); ++s) {
        while (from < old[c].rows.size() && old[c].rows[from] < columns_[c].rows[s]) ++from;
        if (from < old[c].rows.size() && old[c].rows[from] == columns_[c].rows[s])
          columns_[c].shares[s] = old[c].shares[from];
      }
    }
    std::vector<char> served(points_.n, false);
    for (Column& column : paying) {
      if (present[column.id]) continue;
      double paid = 0;
      for (std::size_t s = 0; s < column.rows.size(); ++s)
        if (const std::int32_t i = column.rows[s]; !served[i])
          paid += weights_[i] * std::max(0.0, price_[i] - column.squares[s]);
      if (paid <= plan_.lam / 2) continue;
      for (std::size_t s = 0; s < column.rows.size(); ++s)
        if (price_[column.rows[s]] > column.squares[s]) served[column.rows[s]] = true;
      columns_.push_back(std::move(column));
    }
    sum_shares();
  }

  // Rounds the shares to exemplars, improves these by local search, and keeps them if they are the best so
  // far.
  void round_shares() {
    auto [cost, opened] = open_exemplars(columns_, weights_, plan_.lam);
    if (cost >= rounded_) return;
    rounded_ = cost;
    LocalSearch<T> local_search(scan_, weights_, centers_, plan_.lam, std::move(opened), pool_,
                                report_round());
    if (local_search.cost() >= cost_) return;
    cost_ = local_search.cost();
    open_ = local_search.take_exemplars();
    nearest_ = local_search.take_labels();
  }

  const Points<T> points_;
  const std::span<const double> weights_;
  const ExemplarPlan plan_;
  ThreadPool& pool_;
  const Report& report_;
  CenterScan<T> scan_;
  std::vector<double> centers_;  // the points in float64, as the scan needs them
  std::vector<typename CenterScan<T>::Scratch> scratch_;
  std::vector<double> price_, sum_, paid_;  // by point: its price, its sum of shares, what others pay for it
  std::vector<std::int32_t> everyone_;
  std::vector<Column> columns_;
  std::vector<double> wants_;
  double tolerance_ = kLoose;
  double rho_ = 1;  // penalty for sums of shares that differ from 1
  double cost_ = kFar, relaxed_ = kFar, bound_ = 0;
  double rounded_ = kFar;  // the least cost before local search
  std::vector<std::int32_t> open_, nearest_;
  std::int64_t done_ = 0;
};

}  // namespace

template <class T>
Exemplars solve_exemplars(const Points<T>& points, std::span<const double> weights,
                          std::span<const std::int32_t> seeds, std::span<const std::int32_t> labels,
                          const ExemplarPlan& plan, Gemm<float>* sgemm, ThreadPool& pool,
                          const Report& report) {
  return Solver<T>(points, weights, plan, sgemm, pool, report).run(seeds, labels);
}

#define AGGLO_EXEMPLARS(T)                                                                         \
  template Exemplars solve_exemplars(const Points<T>&, std::span<const double>,                    \
                                     std::span<const std::int32_t>, std::span<const std::int32_t>, \
                                     const ExemplarPlan&, Gemm<float>*, ThreadPool&, const Report&)
AGGLO_EXEMPLARS(float);
AGGLO_EXEMPLARS(double);

}  // namespace agglo::paper
