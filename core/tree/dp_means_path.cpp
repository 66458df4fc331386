#include "tree/dp_means_path.hpp"

#include <utility>

#include "tree/parametric_path.hpp"

namespace agglo {
template <class T>
std::vector<T> sum_descendants(std::span<const std::int32_t> parent, std::span<const T> values) {
  std::vector<T> sums(values.begin(), values.end());
  for (std::size_t v = 0; v + 1 < sums.size(); ++v) sums[parent[v]] += sums[v];
  return sums;
}

template std::vector<double> sum_descendants(std::span<const std::int32_t>, std::span<const double>);
template std::vector<std::int64_t> sum_descendants(std::span<const std::int32_t>,
                                                   std::span<const std::int64_t>);

std::vector<std::uint8_t> select_cheapest_nodes(std::span<const std::int32_t> parent,
                                                std::span<const double> costs) {
  const std::size_t n = parent.size();
  std::vector<double> split(n, 0.0);
  std::vector<std::uint8_t> merged(n), inner(n, 0);
  for (std::size_t v = 0; v < n; ++v) {
    merged[v] = !inner[v] || costs[v] <= split[v];
    if (v + 1 == n) break;
    split[parent[v]] += merged[v] ? costs[v] : split[v];
    inner[parent[v]] = 1;
  }
  return merged;
}

PricePath compute_price_path(std::span<const std::int32_t> parent, std::span<const double> costs,
                             std::int64_t leaves) {
  const std::size_t n = parent.size(), inner = n - static_cast<std::size_t>(leaves);
  std::vector<double> parts(inner, 0.0), more(inner), fewer(inner, -1.0);
  for (std::size_t v = 0; v + 1 < n; ++v) {
    parts[parent[v] - leaves] += costs[v];
    fewer[parent[v] - leaves] += 1;
  }
  for (std::size_t i = 0; i < inner; ++i) more[i] = costs[i + leaves] - parts[i];
  ParametricPath path = compute_parametric_path(parent, leaves, more, fewer);
  return {std::move(path.critical), std::move(path.lams), std::move(path.costs), std::move(path.clusters)};
}

}  // namespace agglo
