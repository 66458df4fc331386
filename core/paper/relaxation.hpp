// The columns of shares of the relaxation in paper/exemplars.hpp, and functions that use them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace agglo::paper {

// One column of the relaxation: the shares of points in one exemplar.
struct Column {
  std::int32_t id;                      // the exemplar
  std::vector<std::int32_t> rows;       // points that can have a share in the exemplar
  std::vector<double> squares, shares;  // for each row: the squared distance to the exemplar, and the share
  double largest = 0;                   // the largest share
};

// Finds a limit `level` for the numbers wants[s] of all rows (see Solver::update in exemplars.cpp).
// At this level, the sum of weight * max(0, want - level) over all rows is `pay`.
// `sum` is the sum of weight * want over the rows with want > 0. `weight` is the sum of the weights of these
// rows. Each iteration raises the level, and then excludes the rows with want <= level.
inline double find_water_level(std::span<const std::int32_t> rows, std::span<const double> wants,
                               std::span<const double> weights, double pay, double sum, double weight) {
  double level = 0;
  for (;;) {
    const double next = (sum - pay) / weight;
    if (!(next > level)) return level;
    level = next;
    sum = weight = 0;
    for (std::size_t s = 0; s < rows.size(); ++s) {
      if (wants[s] <= level) continue;
      sum += weights[rows[s]] * wants[s];
      weight += weights[rows[s]];
    }
    if (weight == 0) return level;
  }
}

// Computes the value of the relaxation after the shares of each point have been scaled to a sum of 1.
// sums[i] is the sum of shares of point i before scaling. A point without shares is its own exemplar.
inline double compute_relaxed_value(std::span<const Column> columns, std::span<const double> sums,
                                    std::span<const double> weights, double lam) {
  double value = 0;
  for (const double sum : sums)
    if (sum <= 0) value += lam;
  for (const Column& column : columns) {
    double largest = 0;
    for (std::size_t s = 0; s < column.rows.size(); ++s) {
      if (column.shares[s] <= 0) continue;
      const std::int32_t i = column.rows[s];
      const double share = column.shares[s] / sums[i];
      value += weights[i] * column.squares[s] * share;
      largest = std::max(largest, share);
    }
    value += lam * largest;
  }
  return value;
}

// Selects exemplars greedily from the columns, in descending order of the largest share of the column.
// An exemplar is opened if it lowers the cost of its points by more than λ.
// Points that are not assigned to an opened exemplar become exemplars themselves.
// Returns the facility-location cost and the exemplars.
inline std::pair<double, std::vector<std::int32_t>> open_exemplars(std::span<const Column> columns,
                                                                   std::span<const double> weights,
                                                                   double lam) {
  std::vector<const Column*> order;
  for (const Column& column : columns)
    if (column.largest > 0) order.push_back(&column);
  std::sort(order.begin(), order.end(), [](const Column* a, const Column* b) {
    return std::pair(-a->largest, a->id) < std::pair(-b->largest, b->id);
  });
  std::vector<double> now;
  for (const double weight : weights) now.push_back(lam / weight);
  std::vector<char> alone(weights.size(), true);
  std::vector<std::int32_t> opened;
  for (const Column* column : order) {
    double gain = 0;
    for (std::size_t s = 0; s < column->rows.size(); ++s)
      gain += weights[column->rows[s]] * std::max(0.0, now[column->rows[s]] - column->squares[s]);
    if (gain <= lam) continue;
    opened.push_back(column->id);
    for (std::size_t s = 0; s < column->rows.size(); ++s) {
      const std::int32_t i = column->rows[s];
      if (column->squares[s] >= now[i]) continue;
      now[i] = column->squares[s];
      alone[i] = false;
    }
  }
  double cost = lam * static_cast<double>(opened.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    cost += weights[i] * now[i];  // if the point is its own exemplar, now[i] is λ / weight
    if (alone[i]) opened.push_back(static_cast<std::int32_t>(i));
  }
  return {cost, std::move(opened)};
}

}  // namespace agglo::paper
