#include "neighbors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>

#include "kernels.hpp"

namespace agglo {
namespace {

// How it works. The points are cut into blocks. Every pair of blocks is a tile, whose products are made once,
// by sgemm, and shown to the lists of both blocks: that is half the multiplications of a search row by row.
//
// Closeness is one number for all metrics, the larger the closer: the dot product, or minus half the squared
// distance. In float32 it comes from sgemm with an error; `Error` bounds it for the pair (i, j) by
// slack[i] + slack[j]. A list holds all pairs whose upper bound reaches the list's bar, which is a number
// that k points of the list surely reach. So nothing of the first k is ever lost, and the exact closeness,
// summed in float64, is needed only for the few that remain in the end (or when a list is full of near ties).

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kBlock = 1024;           // points in a block
constexpr std::int64_t kStrip = 256;            // rows of a tile multiplied at a time: 1 MB of products
constexpr std::int64_t kPanel = 1024 * 1024;    // numbers in a block, unless that makes it too thin
constexpr std::int64_t kRows = 256;             // rows in a chunk of other work
constexpr std::int64_t kMostColumns = 1 << 22;  // beyond it, the bound of float32 products says nothing

bool similarity(Metric metric) { return metric == Metric::dot || metric == Metric::cosine; }

float rounded_down(double x) {
  const float y = static_cast<float>(x);
  return static_cast<double>(y) > x ? std::nextafter(y, kLowest) : y;
}

// The points as sgemm sees them: (x - center) * factor in float32, at most of length 1, and their closeness.
template <class T>
class Space {
 public:
  Space(const Points<T>& points, Metric metric, Team& team) : points_(points), metric_(metric) {
    const std::int64_t n = points.n, d = points.d;
    center_.assign(d, 0.0);
    if (!similarity(metric)) {
      // Close to the mean, so that products are no larger than they need be: any centre is right.
      const std::int64_t sample = std::min<std::int64_t>(n, 1024);
      for (std::int64_t s = 0; s < sample; ++s) {
        const T* x = points.row(s * n / sample);
        for (std::int64_t j = 0; j < d; ++j) center_[j] += x[j] / static_cast<double>(sample);
      }
    }
    squares_.resize(n);
    team.ranges(n, kRows, [&](std::int64_t first, std::int64_t last, int) {
      std::vector<double> shifted(d);
      for (std::int64_t i = first; i < last; ++i) {
        const T* x = points.row(i);
        for (std::int64_t j = 0; j < d; ++j) shifted[j] = x[j] - center_[j];
        squares_[i] = dot(shifted.data(), shifted.data(), d);
      }
    });
    if (metric != Metric::cosine) {
      const double largest = *std::max_element(squares_.begin(), squares_.end());
      if (largest > 0)
        factor_ = std::exp2(-std::ceil(std::log2(largest) / 2));  // a power of two rounds nothing
    }
  }

  const Points<T>& points() const { return points_; }

  // Of all-zero points under cosine there is no direction; their similarity to all is zero.
  double factor(std::int64_t i) const {
    if (metric_ != Metric::cosine) return factor_;
    return squares_[i] > 0 ? 1 / std::sqrt(squares_[i]) : 0;
  }

  double square(std::int64_t i) const { return squares_[i] * (factor(i) * factor(i)); }

  // Half the squared length, where closeness needs it taken from a product of two points.
  double offset(std::int64_t i) const { return similarity(metric_) ? 0 : square(i) / 2; }

  void panel(std::int64_t first, std::int64_t last, float* out) const {
    for (std::int64_t i = first; i < last; ++i, out += points_.d) {
      const T* x = points_.row(i);
      const double scale = factor(i);
      for (std::int64_t j = 0; j < points_.d; ++j) out[j] = static_cast<float>((x[j] - center_[j]) * scale);
    }
  }

  // The same bits for (j, i).
  double closeness(std::int64_t i, std::int64_t j) const {
    const T *x = points_.row(i), *y = points_.row(j);
    const double scale = factor(i) * factor(j);
    if (similarity(metric_)) return dot(x, y, points_.d) * scale;
    return squared_distance(x, y, points_.d) * scale / -2;
  }

  float value(double closeness) const {
    switch (metric_) {
      case Metric::cosine:
        return static_cast<float>(std::clamp(closeness, -1.0, 1.0));
      case Metric::dot:
        return static_cast<float>(closeness / (factor_ * factor_));
      case Metric::sqeuclidean:
        return static_cast<float>(-2 * closeness / (factor_ * factor_));
      default:
        return static_cast<float>(std::sqrt(-2 * closeness) / factor_);
    }
  }

 private:
  Points<T> points_;
  Metric metric_;
  std::vector<double> center_, squares_;
  double factor_ = 1;
};

// The candidates of every point. Who offers to a point must hold the lock of its block.
template <class T>
class Lists {
 public:
  Lists(const Space<T>& space, std::int64_t k)
      : space_(space), k_(k), room_((k + std::max<std::int64_t>(16, k / 4) + 15) / 16 * 16) {
    const std::int64_t n = space.points().n, d = space.points().d;
    // Float32 products of d terms, summed in any order, err by at most gamma |x||y| <= gamma (|x|^2 + |y|^2)
    // / 2; 16 more roundings cover those of the points, the offsets and the sums made with them.
    const double unit = std::numeric_limits<float>::epsilon() / 2;
    const double gamma = d * unit / (1 - d * unit);
    slack_.resize(n);
    offset_.resize(n);
    reach_.assign(n, kLowest);
    bar_.assign(n, kLowest);
    size_.assign(n, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      const double slack = (gamma / 2 + 16 * unit) * space.square(i) + d * std::numeric_limits<float>::min();
      slack_[i] = static_cast<float>(slack);
      offset_[i] = static_cast<float>(space.offset(i) - slack);
    }
    indices_.resize(n * room_);
    uppers_.resize(n * room_);
  }

  // A pair can matter to i only if its product reaches reach(i) + offset(j).
  const float* offset() const { return offset_.data(); }
  const float* reach() const { return reach_.data(); }

  void offer(std::int64_t i, std::int64_t j, float upper) {
    if (upper < bar_[i]) return;
    const std::int64_t slot = i * room_ + size_[i]++;
    indices_[slot] = static_cast<std::int32_t>(j);
    uppers_[slot] = upper;
    if (size_[i] == room_) tighten(i);
  }

  // The first k of every list, best first; the lists are used up.
  Neighbors finish(Team& team, const Report& report) {
    const std::int64_t n = space_.points().n;
    team.ranges(
        n, kRows,
        [&](std::int64_t first, std::int64_t last, int) {
          for (std::int64_t i = first; i < last; ++i) {
            drop(i);
            const auto best = scored(i);
            for (std::int64_t s = 0; s < k_; ++s) {
              indices_[i * room_ + s] = best[s].index;
              uppers_[i * room_ + s] = space_.value(best[s].closeness);
            }
          }
        },
        report);
    for (std::int64_t i = 1; i < n; ++i) {
      std::copy_n(indices_.begin() + i * room_, k_, indices_.begin() + i * k_);
      std::copy_n(uppers_.begin() + i * room_, k_, uppers_.begin() + i * k_);
    }
    indices_.resize(n * k_);
    uppers_.resize(n * k_);
    return {std::move(indices_), std::move(uppers_)};
  }

 private:
  struct Scored {
    double closeness;
    std::int32_t index;

    bool operator<(const Scored& other) const {
      return closeness != other.closeness ? closeness > other.closeness : index < other.index;
    }
  };

  // The list's points by exact closeness; the first k are in order.
  std::span<Scored> scored(std::int64_t i) {
    thread_local std::vector<Scored> list;
    list.clear();
    for (std::int64_t s = i * room_; s < i * room_ + size_[i]; ++s)
      list.push_back({space_.closeness(i, indices_[s]), indices_[s]});
    std::partial_sort(list.begin(), list.begin() + k_, list.end());
    return list;
  }

  // Raises the bar to what k points surely reach and drops those that cannot reach it.
  void drop(std::int64_t i) {
    thread_local std::vector<float> lowers;
    lowers.clear();
    for (std::int64_t s = i * room_; s < i * room_ + size_[i]; ++s)
      lowers.push_back(uppers_[s] - 2 * (slack_[i] + slack_[indices_[s]]));
    std::nth_element(lowers.begin(), lowers.begin() + (k_ - 1), lowers.end(), std::greater<>());
    raise(i, lowers[k_ - 1]);
    std::int64_t kept = i * room_;
    for (std::int64_t s = i * room_; s < i * room_ + size_[i]; ++s) {
      if (uppers_[s] < bar_[i]) continue;
      indices_[kept] = indices_[s];
      uppers_[kept++] = uppers_[s];
    }
    size_[i] = static_cast<std::int32_t>(kept - i * room_);
  }

  // Makes room in a full list.
  void tighten(std::int64_t i) {
    drop(i);
    if (size_[i] <= (k_ + room_) / 2) return;
    // Too many near ties for bounds to tell apart.
    const auto best = scored(i);
    for (std::int64_t s = 0; s < k_; ++s) {
      indices_[i * room_ + s] = best[s].index;
      uppers_[i * room_ + s] = static_cast<float>(best[s].closeness) + (slack_[i] + slack_[best[s].index]);
    }
    size_[i] = static_cast<std::int32_t>(k_);
    raise(i, rounded_down(best[k_ - 1].closeness));
  }

  void raise(std::int64_t i, float bar) {
    bar_[i] = std::max(bar_[i], bar);
    reach_[i] = bar_[i] + offset_[i];
  }

  const Space<T>& space_;
  const std::int64_t k_, room_;
  std::vector<float> slack_, offset_, reach_, bar_;
  std::vector<std::int32_t> size_, indices_;
  std::vector<float> uppers_;
};

// The scratch space of one worker.
struct Bench {
  std::vector<float> rows, columns, products;
  std::vector<std::int32_t> found;
};

// Makes the products of two blocks and shows them to the lists of both. Of a block with itself, each pair
// once.
template <class T>
class Tiles {
 public:
  Tiles(const Space<T>& space, Lists<T>& lists, Sgemm* sgemm, int workers)
      : space_(space), lists_(lists), sgemm_(sgemm), n_(space.points().n), d_(space.points().d) {
    size_ = std::min(kBlock, std::max<std::int64_t>(64, kPanel / d_ / 64 * 64));
    blocks_ = (n_ + size_ - 1) / size_;
    locks_ = std::make_unique<std::mutex[]>(blocks_);
    benches_.resize(workers);
  }

  // Tile t is that of block t % blocks and the one t / blocks further on, around the corner: every two blocks
  // meet once, each block as often as any other at any time, and neighbouring tiles seldom share a block.
  std::int64_t count() const { return blocks_ * (blocks_ + 1) / 2; }

  void show(std::int64_t tile, int worker) {
    const std::int64_t a = tile % blocks_, b = (a + tile / blocks_) % blocks_;
    const std::int64_t first = a * size_, last = std::min(n_, first + size_);
    const std::int64_t left = b * size_, right = std::min(n_, left + size_);
    Bench& bench = benches_[worker];
    bench.rows.resize(size_ * d_);
    bench.columns.resize(size_ * d_);
    bench.products.resize(kStrip * size_);
    bench.found.resize(size_);
    space_.panel(first, last, bench.rows.data());
    if (a != b) space_.panel(left, right, bench.columns.data());
    for (std::int64_t top = first; top < last; top += kStrip) {
      const std::int64_t bottom = std::min(last, top + kStrip);
      const float* rows = bench.rows.data() + (top - first) * d_;
      const std::int64_t from = a == b ? top : left;
      multiply(a == b ? rows : bench.columns.data(), right - from, rows, bottom - top, bench.products.data());
      std::unique_lock lower(locks_[std::min(a, b)]), upper(locks_[std::max(a, b)], std::defer_lock);
      if (a != b) upper.lock();
      filter(top, bottom, from, right, bench);
    }
  }

 private:
  // products[i][j] = rows[i] . columns[j], which Fortran sees as columns of columns.
  void multiply(const float* columns, std::int64_t width, const float* rows, std::int64_t height,
                float* products) const {
    char transposed = 'T', plain = 'N';
    int m = static_cast<int>(width), n = static_cast<int>(height), k = static_cast<int>(d_);
    float one = 1, zero = 0;
    sgemm_(&transposed, &plain, &m, &n, &k, &one, const_cast<float*>(columns), &k, const_cast<float*>(rows),
           &k, &zero, products, &m);
  }

  void filter(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right, Bench& bench) {
    const float *offset = lists_.offset(), *reach = lists_.reach();
    const int width = static_cast<int>(right - left);
    for (std::int64_t i = top; i < bottom; ++i) {
      const float* products = bench.products.data() + (i - top) * width;
      const int begin = left == top ? static_cast<int>(i - left) + 1 : 0;
      const int count = survivors(products, offset + left, reach + left, offset[i], reach[i], begin, width,
                                  bench.found.data());
      for (int s = 0; s < count; ++s) {
        const std::int64_t j = left + bench.found[s];
        const float upper = (products[bench.found[s]] - offset[i]) - offset[j];
        lists_.offer(i, j, upper);
        lists_.offer(j, i, upper);
      }
    }
  }

  const Space<T>& space_;
  Lists<T>& lists_;
  Sgemm* sgemm_;
  std::int64_t n_, d_, size_, blocks_;
  std::unique_ptr<std::mutex[]> locks_;  // of the lists of each block
  std::vector<Bench> benches_;
};

template <class T>
void check(const Points<T>& points) {
  if (points.n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(points.n));
  if (points.d > kMostColumns)
    throw std::invalid_argument("points of at most " + std::to_string(kMostColumns) +
                                " columns can be searched, got " + std::to_string(points.d) +
                                "; reduce their dimension first");
}

}  // namespace

template <class T>
Neighbors nearest(const Points<T>& points, std::int64_t k, Metric metric, Sgemm* sgemm, Team& team,
                  const Report& report) {
  check(points);
  if (k < 1 || k >= points.n)
    throw std::invalid_argument("k must be in 1.." + std::to_string(points.n - 1) + ", got " +
                                std::to_string(k));
  const Space<T> space(points, metric, team);
  Lists<T> lists(space, k);
  Tiles<T> tiles(space, lists, sgemm, team.size());
  const std::int64_t count = tiles.count();
  team.run(count, [&](std::int64_t tile, int worker) { tiles.show(tile, worker); }, report);
  return lists.finish(team, [&](std::int64_t, std::int64_t) {
    if (report) report(count, count);
  });
}

template <class T>
std::vector<float> all_pairs(const Points<T>& points, Metric metric, Team& team, const Report& report) {
  check(points);
  const std::int64_t n = points.n;
  const Space<T> space(points, metric, team);
  std::vector<float> values(n * (n - 1));
  // Row i of the upper triangle, and row n - 1 - i, which together are of one length for all i.
  const auto row = [&](std::int64_t i) {
    for (std::int64_t j = i + 1; j < n; ++j)
      values[i * (n - 1) + (j - 1)] = values[j * (n - 1) + i] = space.value(space.closeness(i, j));
  };
  team.run((n + 1) / 2,
           [&](std::int64_t i, int) {
             row(i);
             if (i != n - 1 - i) row(n - 1 - i);
           },
           report);
  return values;
}

template Neighbors nearest(const Points<float>&, std::int64_t, Metric, Sgemm*, Team&, const Report&);
template Neighbors nearest(const Points<double>&, std::int64_t, Metric, Sgemm*, Team&, const Report&);
template std::vector<float> all_pairs(const Points<float>&, Metric, Team&, const Report&);
template std::vector<float> all_pairs(const Points<double>&, Metric, Team&, const Report&);

}  // namespace agglo
