#include "sparse/cosine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace agglo {
namespace {

constexpr int kLanes = 8;  // number of partial sums, the same as for dense points (simd/dot.cpp)

// The Measure of InvertedSearch for dot product and cosine.
// Rows are scaled as in the class Space, so that float32 products are precise and do not overflow.
template <class T>
class Products {
 public:
  struct Query;

  Products(const SparseRows<T>& rows, Metric metric, Duplicates found_duplicates)
      : duplicates(std::move(found_duplicates)),
        ids(duplicates.first),
        rows_(rows),
        cosine_(metric == Metric::cosine),
        factors_(factors(rows, cosine_)),
        postings(rows, ids,
                 [this](std::int32_t i, T number) { return static_cast<float>(number * factor(i)); }),
        levels(postings) {
    for (const std::int32_t i : ids) longest_ = std::max(longest_, std::sqrt(square(i)) * factor(i));
    std::array<double, Levels::count> rest;
    for (auto& column : levels.rest) column.resize(ids.size());
    for (std::size_t p = 0; p < ids.size(); ++p) {
      set_rest(ids[p], rest);
      for (int level = 0; level + 1 < Levels::count; ++level) {
        levels.rest[level][p] = static_cast<float>(rest[level]);
        most_[level] = std::max(most_[level], rest[level]);
      }
    }
  }

  struct Query {
    explicit Query(const Products& products) : numbers(products.rows_.columns, T(0)) {}

    std::vector<Term> terms;
    std::array<double, Levels::count>
        rest;      // for each level, the norm of the query in the columns of higher levels
    double slack;  // an upper bound of the error of partial similarities, which are float32 sums
    // An upper bound of the difference between float64 sums of the same terms in different orders.
    double order;
    std::vector<T> numbers;  // the numbers of the row, by column
    std::int32_t row = -1;
  };

  void begin(std::int32_t row, Query& x) const {
    scatter(row, x);
    set_rest(x.row, x.rest);
    x.terms.clear();
    const auto columns = rows_.row(x.row);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      const float weight = static_cast<float>(rows_.numbers(x.row)[e] * factor(x.row));
      x.terms.push_back({columns[e], levels.of[columns[e]], weight, postings.length(columns[e])});
    }
    std::sort(x.terms.begin(), x.terms.end());
    // x.slack bounds the error of a float32 sum of m products. Numbers, products and sums are all rounded.
    // The comment at float32_slack() explains such bounds.
    const double unit = std::numeric_limits<float>::epsilon() / 2, m = static_cast<double>(columns.size());
    const double length = std::sqrt(square(x.row)) * factor(x.row);
    x.order = (m + 16) * std::numeric_limits<double>::epsilon();
    x.slack = (m + 16) * unit * length * longest_ + (m + 1) * std::numeric_limits<float>::min();
  }

  double unseen(const Query& x, int level) const { return x.rest[level] * most_[level] + x.slack; }

  std::int64_t select(const Query& x, int level, double threshold, const float* partial, std::int64_t first,
                      std::int64_t n, std::int32_t* found) const {
    const auto [own, least] = test(x, level, threshold);
    if (level + 1 == Levels::count) level = 0;  // after the last level, `own` is 0, so `rest` has no effect
    return select_products(partial, levels.rest[level].data() + first, n, own, least, found);
  }
  std::int64_t select_of(const Query& x, int level, double threshold, const float* partial,
                         const std::int32_t* positions, std::int64_t n, std::int32_t* found) const {
    const auto [own, least] = test(x, level, threshold);
    const float* rest = levels.rest[level + 1 == Levels::count ? 0 : level].data();
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      found[count] = positions[j];
      count += partial[positions[j]] + own * rest[positions[j]] >= least;
    }
    return count;
  }
  double lower_bound(const Query& x, std::int32_t q) const { return quick(x, ids[q]) - x.order; }
  double exact(const Query& x, std::int32_t q, float, double threshold) const {
    const double about = quick(x, ids[q]);
    return about < threshold - x.order ? about : similarity(x, ids[q]);
  }
  double self_similarity(std::int32_t row) const { return square(row) * (factor(row) * factor(row)); }
  std::pair<std::int64_t, std::int64_t> span(const Query&, double) const {
    return {0, static_cast<std::int64_t>(ids.size())};
  }

  void scatter(std::int32_t row, Query& x) const {
    if (x.row >= 0)
      for (const std::int32_t column : rows_.row(x.row)) x.numbers[column] = 0;
    x.row = row;
    const auto columns = rows_.row(row);
    for (std::size_t e = 0; e < columns.size(); ++e) x.numbers[columns[e]] = rows_.numbers(row)[e];
  }

  // Returns the similarity of a query and a row. The terms are summed faster than in similarity().
  // The order of the sum is different, so the last bits may differ.
  double quick(const Query& x, std::int32_t row) const {
    const std::int32_t* columns = rows_.indices.data();
    const T *values = rows_.values.data(), *numbers = x.numbers.data();
    double sums[4] = {};
    std::int64_t e = rows_.indptr[row];
    const std::int64_t end = rows_.indptr[row + 1];
    const auto product = [&](std::int64_t at) {
      return static_cast<double>(numbers[columns[at]]) * static_cast<double>(values[at]);
    };
    for (; e + 4 <= end; e += 4)
      for (int l = 0; l < 4; ++l) sums[l] += product(e + l);
    for (; e < end; ++e) sums[0] += product(e);
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) * (factor(x.row) * factor(row));
  }

  double similarity(const Query& x, std::int32_t row) const {
    double lane[kLanes] = {};
    for (std::int64_t e = rows_.indptr[row]; e < rows_.indptr[row + 1]; ++e) {
      const std::int32_t column = rows_.indices[e];
      lane[static_cast<std::uint32_t>(column) % kLanes] +=
          static_cast<double>(x.numbers[column]) * static_cast<double>(rows_.values[e]);
    }
    return total(lane) * (factor(x.row) * factor(row));
  }

  // Returns the exact similarity of two rows. Only common columns are summed, because other products are 0.
  static double similarity(const SparseRows<T>& rows, std::int32_t i, std::int32_t j, double scale) {
    double lane[kLanes] = {};
    const auto left = rows.row(i), right = rows.row(j);
    for (std::size_t e = 0, f = 0; e < left.size() && f < right.size();) {
      if (left[e] == right[f])
        lane[static_cast<std::uint32_t>(left[e]) % kLanes] +=
            static_cast<double>(rows.numbers(i)[e]) * static_cast<double>(rows.numbers(j)[f]);
      const bool next_left = left[e] <= right[f], next_right = right[f] <= left[e];
      e += next_left;
      f += next_right;
    }
    return total(lane) * scale;
  }

  // Returns the factors by which rows are scaled. Under cosine, each row has its own factor.
  // Under dot product, the result is one factor for all rows.
  static std::vector<double> factors(const SparseRows<T>& rows, bool cosine) {
    double largest = 0;
    std::vector<double> result;
    for (std::int32_t i = 0; i < rows.n(); ++i) {
      const double it = square(rows, i);
      largest = std::max(largest, it);
      if (cosine) result.push_back(it > 0 ? 1 / std::sqrt(it) : 0);
    }
    if (!cosine) result.push_back(largest > 0 ? std::min(unit_scale(largest), kMaxScale) : 1);
    return result;
  }

  float value(double similarity) const {
    if (cosine_) return static_cast<float>(std::clamp(similarity, -1.0, 1.0));
    return static_cast<float>(similarity / (factors_[0] * factors_[0]));
  }

  Duplicates duplicates;
  // The ids of the distinct rows. The position of a row is its index in this vector.
  const std::vector<std::int32_t>& ids;
  const double min_similarity = 0;

 private:
  // Returns the arguments `own` and `threshold` of select_products (simd/filter.hpp).
  // The threshold is reduced by the error bound, so that rounding excludes no row.
  std::pair<float, float> test(const Query& x, int level, double threshold) const {
    return {static_cast<float>(x.rest[level]),
            std::nextafter(static_cast<float>(threshold - x.slack), -std::numeric_limits<float>::infinity())};
  }

  void set_rest(std::int32_t row, std::array<double, Levels::count>& rest) const {
    rest.fill(0);
    for (std::int64_t e = rows_.indptr[row]; e < rows_.indptr[row + 1]; ++e) {
      const double weight = static_cast<double>(rows_.values[e]) * factor(row);
      const int level = levels.of[rows_.indices[e]];
      if (level > 0) rest[level - 1] += weight * weight;
    }
    for (int level = Levels::count - 2; level >= 0; --level) rest[level] += rest[level + 1];
    for (double& it : rest) it = std::sqrt(it) * (1 + 1e-6);
  }

  static double total(const double* lane) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }

  double square(std::int32_t row) const { return square(rows_, row); }
  static double square(const SparseRows<T>& rows, std::int32_t row) {
    double lane[kLanes] = {};
    for (std::int64_t e = rows.indptr[row]; e < rows.indptr[row + 1]; ++e)
      lane[static_cast<std::uint32_t>(rows.indices[e]) % kLanes] +=
          static_cast<double>(rows.values[e]) * static_cast<double>(rows.values[e]);
    return total(lane);
  }

  double factor(std::int32_t row) const { return factors_[cosine_ ? row : 0]; }

  SparseRows<T> rows_;
  bool cosine_;
  std::vector<double> factors_;
  double longest_ = 0;  // the maximum length of a row times its factor
  // For each level, the largest norm of a row in the columns of higher levels.
  std::array<double, Levels::count> most_ = {};

 public:
  Postings postings;
  Levels levels;
};

}  // namespace

template <class T>
Neighbors exact_neighbors(const SparseRows<T>& rows, std::int64_t k, Metric metric, ThreadPool& pool,
                          const Report& report) {
  const Products<T> products(rows, metric, find_duplicates(rows, pool));
  InvertedSearch<Products<T>> search(products, k, pool.size());
  return all_lists(
      products, products.ids, k, [&](std::int64_t p, int worker) { return search.search_row(p, worker); },
      [&](double similarity) { return products.value(similarity); }, pool, report);
}

template <class T>
Neighbors exact_query(const SparseRows<T>& rows, std::int64_t base, std::int64_t k, Metric metric,
                      ThreadPool& pool, const Report& report) {
  const Products<T> products(rows, metric, find_duplicates(rows.first(base), pool));
  InvertedSearch<Products<T>> search(products, k, pool.size());
  return query_lists(
      products, base, rows.n(), k,
      [&](std::int32_t row, int worker) { return search.search_query(row, worker); },
      [&](double similarity) { return products.value(similarity); }, pool, report);
}

template <class T>
std::vector<float> pairwise_values(const SparseRows<T>& rows, Metric metric, ThreadPool& pool,
                                   const Report& report) {
  const Products<T> products(rows, metric, find_duplicates(rows, pool));
  const std::int32_t n = static_cast<std::int32_t>(rows.n());
  std::vector<typename Products<T>::Query> queries(pool.size(), typename Products<T>::Query(products));
  std::vector<float> values(static_cast<std::int64_t>(n) * (n - 1));
  pool.run(
      n,
      [&](std::int64_t i, int worker) {
        products.scatter(static_cast<std::int32_t>(i), queries[worker]);
        float* out = values.data() + i * (n - 1);
        for (std::int32_t j = 0; j < n; ++j)
          if (j != i) *out++ = products.value(products.similarity(queries[worker], j));
      },
      report);
  return values;
}

template <class T>
PairSimilarity pair_similarity(const SparseRows<T>& rows, Metric metric) {
  const bool cosine = metric == Metric::cosine;
  return [rows, cosine, factors = Products<T>::factors(rows, cosine)](std::int32_t i, std::int32_t j) {
    return Products<T>::similarity(rows, i, j, factors[cosine ? i : 0] * factors[cosine ? j : 0]);
  };
}

template Neighbors exact_neighbors(const SparseRows<float>&, std::int64_t, Metric, ThreadPool&,
                                   const Report&);
template Neighbors exact_neighbors(const SparseRows<double>&, std::int64_t, Metric, ThreadPool&,
                                   const Report&);
template Neighbors exact_query(const SparseRows<float>&, std::int64_t, std::int64_t, Metric, ThreadPool&,
                               const Report&);
template Neighbors exact_query(const SparseRows<double>&, std::int64_t, std::int64_t, Metric, ThreadPool&,
                               const Report&);
template std::vector<float> pairwise_values(const SparseRows<float>&, Metric, ThreadPool&, const Report&);
template std::vector<float> pairwise_values(const SparseRows<double>&, Metric, ThreadPool&, const Report&);
template PairSimilarity pair_similarity(const SparseRows<float>&, Metric);
template PairSimilarity pair_similarity(const SparseRows<double>&, Metric);

}  // namespace agglo
