// The shares that points have of exemplars, in columns, and what follows from them alone. See
// paper/exemplars.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace agglo {

// A column of shares: the rows that can have one.
struct Column {
  std::int32_t id;
  std::vector<std::int32_t> rows;
  std::vector<double> squares, shares;
  double largest = 0;  // share
};

// The level such that the sum of weight * max(0, want - level) over the rows is `pay`, given that of the
// wants above 0 and of their weights. It rises towards the solution while wants below it drop out.
inline double water_level(std::span<const std::int32_t> rows, std::span<const double> wants,
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

// The relaxation's value of the shares, whose sums for each point are given, once they are scaled to a sum of
// 1; a point without any is its own exemplar.
inline double relaxed_value(std::span<const Column> columns, std::span<const double> sums,
                            std::span<const double> weights, double lambda) {
  double value = 0;
  for (const double sum : sums)
    if (sum <= 0) value += lambda;
  for (const Column& column : columns) {
    double largest = 0;
    for (std::size_t s = 0; s < column.rows.size(); ++s) {
      if (column.shares[s] <= 0) continue;
      const std::int32_t i = column.rows[s];
      const double share = column.shares[s] / sums[i];
      value += weights[i] * column.squares[s] * share;
      largest = std::max(largest, share);
    }
    value += lambda * largest;
  }
  return value;
}

// Exemplars that pay, those of the largest shares first; whom none of them serves is its own. And their cost.
inline std::pair<double, std::vector<std::int32_t>> opened_by(std::span<const Column> columns,
                                                              std::span<const double> weights,
                                                              double lambda) {
  std::vector<const Column*> order;
  for (const Column& column : columns)
    if (column.largest > 0) order.push_back(&column);
  std::sort(order.begin(), order.end(), [](const Column* a, const Column* b) {
    return std::pair(-a->largest, a->id) < std::pair(-b->largest, b->id);
  });
  std::vector<double> now;
  for (const double weight : weights) now.push_back(lambda / weight);
  std::vector<char> alone(weights.size(), true);
  std::vector<std::int32_t> opened;
  for (const Column* column : order) {
    double gain = 0;
    for (std::size_t s = 0; s < column->rows.size(); ++s)
      gain += weights[column->rows[s]] * std::max(0.0, now[column->rows[s]] - column->squares[s]);
    if (gain <= lambda) continue;
    opened.push_back(column->id);
    for (std::size_t s = 0; s < column->rows.size(); ++s) {
      const std::int32_t i = column->rows[s];
      if (column->squares[s] >= now[i]) continue;
      now[i] = column->squares[s];
      alone[i] = false;
    }
  }
  double cost = lambda * static_cast<double>(opened.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    cost += weights[i] * now[i];  // what is alone has lambda there
    if (alone[i]) opened.push_back(static_cast<std::int32_t>(i));
  }
  return {cost, std::move(opened)};
}

}  // namespace agglo
