#include "paper/exemplars.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "paper/center_scan.hpp"
#include "paper/local_search.hpp"
#include "paper/relaxation.hpp"
#include "simd/dot.hpp"

namespace agglo::paper {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::int64_t kColumns = 1024;  // number of columns per parallel task
constexpr int kSteps = 30;               // maximum number of price updates per round
constexpr int kSweeps = 50;              // maximum number of sweeps over all columns per price update
// End the sweeps if shares change by less than 0.1 times the error, which is the largest |1 - sum_|.
constexpr double kLittle = 0.1;
constexpr double kIdle = 0.5;    // remove a column without shares if its payment is below 0.5 λ
constexpr double kAlone = 1.01;  // limit the price of a point to 1.01 λ / weight
constexpr double kLoose = 1e-2;  // first round: end the price updates if the error is at most this value
constexpr double kTight = 1e-9;  // last rounds: end the price updates if the error is at most this value

class Solver {
 public:
  Solver(const AnyPoints& points, std::span<const double> weights, const ExemplarPlan& plan,
         Gemm<float>* sgemm, ThreadPool& pool, const Report& report)
      : points_(points),
        weights_(weights),
        plan_(plan),
        pool_(pool),
        report_(report),
        scan_(points, sgemm, pool),
        centers_(points.n * points.d),
        scratch_(pool.size()),
        price_(points.n),
        sum_(points.n, 1.0),
        paid_(points.n),
        everyone_(index_range(0, points.n)) {
    for (std::int64_t i = 0; i < points.n; ++i) widen_row(points, i, centers_.data() + i * points.d);
  }

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
    result.bound = std::min(bound_, result.relaxed);  // only rounding errors make bound_ larger
    return result;
  }

 private:
  Report report_round() const {
    return [this](std::int64_t, std::int64_t) {
      if (report_) report_(done_, plan_.max_iter);
    };
  }

  // Makes the seeds the initial exemplars. Sets prices at which the points of each seed together pay λ for
  // it.
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

  // Recomputes sum_, the sum of shares of each point, so that rounding errors do not accumulate.
  void sum_shares() {
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (const Column& column : columns_)
      for (std::size_t s = 0; s < column.rows.size(); ++s) sum_[column.rows[s]] += column.shares[s];
  }

  // Calls visit(i, c, squared distance) for every point i and candidate exemplar ids[c] whose squared
  // distance is below reach(i). For each candidate, the points are visited in order of i. Candidates are
  // visited in parallel.
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

  // Generates the columns `ids`, in which all shares are 0.
  // The rows of a column are all points that could have a share at prices near the current prices.
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

  // Sweeps over the columns until the shares hardly change. Then updates the prices once.
  // Returns the largest difference between 1 and the sum of shares of a point.
  // Price updates after every sweep would be faster, but they may cycle without converging.
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
    // Optimal prices are at least 0. They are at most λ / weight, the cost of a point as its own exemplar.
    // The limit here is slightly larger, because columns are generated only for payments above λ.
    for (std::int64_t i = 0; i < points_.n; ++i)
      price_[i] = std::clamp(price_[i] + rho_ * (1 - sum_[i]), 0.0, kAlone * plan_.lam / weights_[i]);
    return error;
  }

  // Optimizes the shares of one column while all other columns are fixed. Returns the largest share change.
  // The want of a row is the share that would be optimal if λ were 0. It follows from the price of the row.
  // The optimal share is the want, limited to the range from 0 to `level`.
  // `level` is chosen such that the weighted sum of max(0, want - level) is λ / rho.
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

  // Computes the payments of all columns at the current prices.
  // Updates the lower bound, and adds columns whose payment exceeds λ.
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
    // Let `most` be the largest payment, but at least λ.
    // Prices multiplied by the factor λ / most satisfy the constraints of the dual.
    // The reason is that a payment is a convex function of this factor, and is 0 for factor 0.
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

  // Improves the lower bound. Lowers prices only as far as needed until no payment exceeds λ.
  // `paying` must contain all columns whose payment exceeds λ.
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

  // Selects the columns of the next sweeps. Their rows are the points that can have shares at current prices.
  // Old columns with shares or a large payment are kept. New columns are taken from `paying`.
  // A point is served if it pays for an earlier new column.
  // A new column is added only if its points that are not served pay more than λ / 2.
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

  // Rounds the shares to a set of exemplars, and improves this set by local search.
  // Stores the exemplars if their cost is the smallest so far.
  void round_shares() {
    auto [cost, opened] = open_exemplars(columns_, weights_, plan_.lam);
    if (cost >= rounded_) return;
    rounded_ = cost;
    LocalSearch local_search(scan_, weights_, centers_, plan_.lam, std::move(opened), pool_, report_round());
    if (local_search.cost() >= cost_) return;
    cost_ = local_search.cost();
    open_ = local_search.take_exemplars();
    nearest_ = local_search.take_labels();
  }

  const AnyPoints points_;
  const std::span<const double> weights_;
  const ExemplarPlan plan_;
  ThreadPool& pool_;
  const Report& report_;
  CenterScan scan_;
  std::vector<double> centers_;  // the points in float64, because scan_ needs centers in float64
  std::vector<CenterScan::Scratch> scratch_;
  // For each point: its dual variable (price), the sum of its assignment fractions (shares), and the left
  // side of its dual constraint (payment). See exemplars.hpp.
  std::vector<double> price_, sum_, paid_;
  std::vector<std::int32_t> everyone_;
  std::vector<Column> columns_;
  std::vector<double> wants_;
  double tolerance_ = kLoose;
  double rho_ = 1;  // penalty factor for sums of shares that differ from 1
  double cost_ = kFar, relaxed_ = kFar, bound_ = 0;
  double rounded_ = kFar;  // the smallest cost of a set of exemplars before local search
  std::vector<std::int32_t> open_, nearest_;
  std::int64_t done_ = 0;
};

}  // namespace

Exemplars solve_exemplars(const AnyPoints& points, std::span<const double> weights,
                          std::span<const std::int32_t> seeds, std::span<const std::int32_t> labels,
                          const ExemplarPlan& plan, Gemm<float>* sgemm, ThreadPool& pool,
                          const Report& report) {
  return Solver(points, weights, plan, sgemm, pool, report).run(seeds, labels);
}

}  // namespace agglo::paper
