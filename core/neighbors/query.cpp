#include "neighbors/query.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "base/blas.hpp"
#include "base/memory.hpp"
#include "ivf/tuning.hpp"
#include "neighbors/lists.hpp"
#include "neighbors/true_neighbors.hpp"
#include "points/expand.hpp"
#include "simd/dot.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kRows = 256;       // queries multiplied at a time
constexpr std::int64_t kColumns = 1024;   // points that they are multiplied with
constexpr std::int64_t kBatch = 1 << 16;  // queries whose images are kept at a time
constexpr std::int64_t kSize = 256;       // points in a cell
constexpr std::int64_t kTuning = 128;     // points that the effort is chosen by
constexpr std::int64_t kProbes = 16;      // groups of cells that a query looks for its own in

// The squared length of an image in units of the largest of the points'. What is longer is nowhere near any
// of them, and its products might overflow.
constexpr double kFar = 0x1p80;

template <class T>
void check(const Points<T>& points, std::int64_t k) {
  if (points.n > std::numeric_limits<std::int32_t>::max() / 2)
    throw std::invalid_argument("at most 2^30 points can be searched, got " + std::to_string(points.n));
  if (k < 1 || k > points.n)
    throw std::invalid_argument("k must be in 1.." + std::to_string(points.n) + ", got " + std::to_string(k));
}

// Compares a few queries with all points, block by block.
template <class T>
class Strip {
 public:
  Strip(const Space<T>& space, std::span<const std::int32_t> ids, std::span<const float> offsets,
        std::span<const float> slacks, std::int64_t wanted, Gemm<float>* sgemm)
      : space_(space), ids_(ids), offsets_(offsets), slacks_(slacks), wanted_(wanted), sgemm_(sgemm) {}

  // `out(i, closest)` gets the closest distinct points of query first + i, in order.
  template <class Out>
  void run(const Points<T>& queries, std::int64_t first, std::int64_t last, const Out& out) {
    const std::int64_t m = last - first, d = space_.d(), n = static_cast<std::int64_t>(ids_.size());
    guests_.clear();
    images_.assign(m * d, 0.0f);
    own_.resize(m);
    reach_.assign(m, -kInfinity);
    best_.resize(m);
    for (std::int64_t i = 0; i < m; ++i) {
      guests_.push_back(space_.guest(queries.row(first + i)));
      const double square = guests_[i].square;
      own_[i] = static_cast<float>((similarity(space_.metric()) ? 0 : square / 2) - slack_of(square, d));
      best_[i].clear();
      if (far(i)) continue;  // all points are compared with it exactly
      space_.image(guests_[i], images_.data() + i * d);
    }
    block_.resize(kColumns);
    hits_.resize(kColumns);
    nobody_.assign(kColumns, kInfinity);
    for (std::int64_t left = 0; left < n; left += kColumns) {
      const std::int64_t width = std::min(n - left, kColumns);
      std::iota(block_.begin(), block_.begin() + width, static_cast<std::int32_t>(left));
      gather(space_, ids_, std::span<const std::int32_t>(block_).first(width), columns_);
      multiply(sgemm_, images_.data(), m, columns_.data(), width, d, products_);
      for (std::int64_t i = 0; i < m; ++i) look(i, left, width, products_.data() + i * width);
    }
    for (std::int64_t i = 0; i < m; ++i) {
      trim(i);
      out(i, std::span<const Candidate>(best_[i]));
    }
  }

 private:
  bool far(std::int64_t i) const { return !(guests_[i].square < kFar); }

  void look(std::int64_t i, std::int64_t left, std::int64_t width, const float* products) {
    if (left == 0 && width > wanted_ && !far(i)) {
      // What so many of the first points surely reach, others must reach, too.
      lowers_.resize(width);
      const float slack = static_cast<float>(slack_of(guests_[i].square, space_.d()));
      for (std::int64_t c = 0; c < width; ++c)
        lowers_[c] = ((products[c] - own_[i]) - offsets_[c]) - 2 * (slack + slacks_[c]);
      reach_[i] = reached_by(wanted_, lowers_.data(), width) + own_[i];
    }
    const int count = survivors(products, offsets_.data() + left, nobody_.data(), 0, reach_[i], 0,
                                static_cast<int>(width), hits_.data());
    for (int h = 0; h < count; ++h) {
      const std::int32_t j = ids_[left + hits_[h]];
      best_[i].push_back({space_.closeness(guests_[i], j), j});
    }
    if (static_cast<std::int64_t>(best_[i].size()) < 4 * wanted_ + 64) return;
    trim(i);
    const double last = best_[i].back().closeness;
    float bar = static_cast<float>(last);
    if (bar > last) bar = std::nextafter(bar, -kInfinity);
    if (!far(i)) reach_[i] = std::max(reach_[i], bar + own_[i]);
  }

  void trim(std::int64_t i) {
    auto& list = best_[i];
    if (static_cast<std::int64_t>(list.size()) > wanted_) {
      std::nth_element(list.begin(), list.begin() + (wanted_ - 1), list.end());
      list.resize(wanted_);
    }
    std::sort(list.begin(), list.end());
  }

  const Space<T>& space_;
  const std::span<const std::int32_t> ids_;
  const std::span<const float> offsets_, slacks_;
  const std::int64_t wanted_;
  Gemm<float>* const sgemm_;
  std::vector<Guest<T>> guests_;
  std::vector<float> images_, own_, reach_, columns_, products_, nobody_, lowers_;
  std::vector<std::int32_t> block_, hits_;
  std::vector<std::vector<Candidate>> best_;
};

}  // namespace

template <class T>
Neighbors nearest_to(const Points<T>& queries, const Points<T>& points, std::int64_t k, Metric metric,
                     Gemm<float>* sgemm, ThreadPool& pool, const Report& report) {
  check(points, k);
  const Space<T> space(points, metric, pool);
  const Copies groups = copies(points, pool);
  const std::span<const std::int32_t> ids = groups.first;
  const std::int64_t wanted = std::min(k, static_cast<std::int64_t>(ids.size()));
  std::vector<float> offsets(ids.size()), slacks(ids.size());
  for (std::size_t p = 0; p < ids.size(); ++p) {
    slacks[p] = static_cast<float>(slack_of(space, ids[p]));
    offsets[p] = static_cast<float>(space.offset(ids[p]) - slack_of(space, ids[p]));
  }
  Neighbors result{std::vector<std::int32_t>(queries.n * k), std::vector<float>(queries.n * k)};
  const std::int64_t grain =
      std::clamp<std::int64_t>(queries.n / (4 * static_cast<std::int64_t>(pool.size())), 1, kRows);
  std::vector<Strip<T>> strips(pool.size(), Strip<T>(space, ids, offsets, slacks, wanted, sgemm));
  pool.ranges(
      queries.n, grain,
      [&](std::int64_t first, std::int64_t last, int worker) {
        Expansion<T> expansion(space, groups, k);
        strips[worker].run(queries, first, last, [&](std::int64_t i, std::span<const Candidate> closest) {
          expansion.write_guest(first + i, closest, result);
        });
      },
      report);
  return result;
}

// Compares a query's candidates exactly and writes its list.
template <class T>
class CellIndex<T>::Finish {
 public:
  Finish(const CellIndex& index, Neighbors& result)
      : index_(index), result_(result), expansion_(index.space_, index.groups_, index.k_) {}

  void operator()(const Guest<T>& guest, std::int64_t row, std::span<const std::int32_t> slots) {
    others_.clear();
    for (const std::int32_t slot : slots) others_.push_back(index_.groups_.first[index_.coded_->place(slot)]);
    if (static_cast<std::int64_t>(others_.size()) > index_.wanted_ + kSpare) rule_out(guest);
    list_.clear();
    for (std::size_t s = 0; s < others_.size(); ++s) {
      prefetch(s + 2);
      list_.push_back({index_.space_.closeness(guest, others_[s]), others_[s]});
    }
    const auto end = list_.begin() + index_.wanted_;
    std::nth_element(list_.begin(), end - 1, list_.end());
    std::sort(list_.begin(), end);
    expansion_.write_guest(row, {list_.begin(), end}, result_);
  }

 private:
  static constexpr std::int64_t kSpare = 6;  // candidates that are compared exactly without further ado

  // Leaves out those that are surely not among the closest, by float32 and how much it may err.
  void rule_out(const Guest<T>& guest) {
    if (!guest.quick) return;  // for there is nothing faster
    const Space<T>& space = index_.space_;
    uppers_.clear();
    lowers_.clear();
    const double own = slack_of(guest.square, space.d());
    for (std::size_t s = 0; s < others_.size(); ++s) {
      prefetch(s + 2);
      const double closeness = space.quick_closeness(guest, others_[s]);
      const double slack = own + slack_of(space, others_[s]) + std::abs(closeness) * 1e-6;
      uppers_.push_back(static_cast<float>(closeness + slack));
      lowers_.push_back(static_cast<float>(closeness - slack));
    }
    const float bar = reached_by(index_.wanted_, lowers_.data(), static_cast<std::int64_t>(lowers_.size()));
    std::size_t left = 0;
    for (std::size_t s = 0; s < others_.size(); ++s)
      if (uppers_[s] >= bar) others_[left++] = others_[s];
    others_.resize(left);
  }

  void prefetch(std::size_t s) const {
    const Space<T>& space = index_.space_;
    if (s < others_.size()) agglo::prefetch(space.points().row(others_[s]), space.d());
  }

  const CellIndex& index_;
  Neighbors& result_;
  Expansion<T> expansion_;
  std::vector<std::int32_t> others_;
  std::vector<Candidate> list_;
  std::vector<float> uppers_, lowers_;
};

// Some queries: how the cells see them, and which cell is closest to each.
template <class T>
struct CellIndex<T>::Batch {
  std::int64_t first, last;
  std::vector<Guest<T>> guests;
  std::vector<float> rows;
  std::vector<std::int32_t> home;
};

template <class T>
CellIndex<T>::CellIndex(const Points<T>& points, std::int64_t k, Metric metric, double recall,
                        const Effort& effort, std::span<const std::int32_t> cells,
                        std::span<const float> basis, std::uint64_t seed, const Blas& blas, ThreadPool& pool,
                        const Report& report)
    : points_(points),
      k_(k),
      product_(similarity(metric)),
      blas_(blas),
      space_((check(points, k), points), metric, pool),
      groups_(copies(points, pool)),
      wanted_(std::min(k, static_cast<std::int64_t>(groups_.first.size()))),
      basis_(basis.begin(), basis.end()),
      effort_(effort) {
  effort_.size = std::max(effort.size == 0 ? kSize : effort.size, 4 * (wanted_ + 1));
  if (basis_.empty())
    images_ = std::make_unique<WholeImages<T>>(space_, groups_.first);
  else
    images_ = std::make_unique<ProjectedImages<T>>(space_, groups_.first, basis_, !product_, pool, report);
  std::mt19937_64 chance(seed);
  const bool by_product = metric == Metric::dot;
  auto homes = known_homes(cells);
  if (!homes.empty())
    cells_ = std::make_unique<Partition>(*images_, std::move(homes), by_product, pool, report);
  else
    cells_ = std::make_unique<Partition>(*images_, effort_.size, wanted_ + 1, false, by_product, chance(),
                                         pool, report);
  coded_ = std::make_unique<CodedCells>(*images_, *cells_, product_, pool, report);
  const auto near = static_cast<std::int64_t>(cells_->near(0).size());
  if (effort_.visits == 0) learn(recall, chance(), pool);
  effort_.visits = std::min(effort_.visits, near);
  effort_.kept = std::max(effort_.kept, wanted_ + 1);
  if (cells_->count() == 1) effort_.kept = images_->n();  // which is to compare all
  // Whatever counts as close, a query is at home where it would be if it were one of the points.
  Centers centers{images_->width(), {}, {}};
  for (std::int64_t c = 0; c < cells_->count(); ++c)
    centers.add(cells_->center(c), half_square(cells_->center(c), images_->width()));
  const auto balanced = static_cast<std::int64_t>(std::sqrt(static_cast<double>(kProbes * centers.count())));
  homes_ = std::make_unique<Groups>(centers, std::min(balanced, centers.count()), kProbes, pool);
}

// The cells of the distinct points; none, if they are not known or some are too small to fill a list.
template <class T>
std::vector<std::int32_t> CellIndex<T>::known_homes(std::span<const std::int32_t> cells) const {
  std::vector<std::int32_t> homes;
  std::vector<std::int64_t> sizes;
  for (std::size_t p = 0; p < groups_.first.size() && !cells.empty(); ++p) {
    homes.push_back(cells[groups_.first[p]]);
    if (homes.back() >= static_cast<std::int64_t>(sizes.size())) sizes.resize(homes.back() + 1, 0);
    ++sizes[homes.back()];
  }
  if (sizes.size() > 1 && *std::min_element(sizes.begin(), sizes.end()) <= wanted_) homes.clear();
  return homes;
}

// Chooses the effort by what a sample of the points takes.
template <class T>
void CellIndex<T>::learn(double recall, std::uint64_t seed, ThreadPool& pool) {
  const std::int64_t n = points_.n, neighbors = std::min(k_, images_->n() - 1);
  effort_.visits = 1;
  if (neighbors == 0) return;
  std::vector<std::int32_t> places;
  for (const std::int32_t point : random_sample(n, kTuning, seed)) places.push_back(groups_.group[point]);
  Truth<T> truth(space_, groups_.first, neighbors, places);
  truth.find(*cells_, blas_.sgemm, pool, {});
  std::vector<Visitor> visitors;
  for (int w = 0; w < pool.size(); ++w) visitors.emplace_back(*images_, *cells_, *coded_, product_);
  EffortPlan plan(points_.n, neighbors, effort_.size, coded_->coded(), points_.d);
  plan.learn(truth, *cells_, *coded_, static_cast<std::int64_t>(places.size()), visitors, pool);
  const auto choice = plan.cheapest(recall);
  effort_.visits = choice.visits;
  effort_.kept = choice.kept;
}

template <class T>
void CellIndex<T>::find_homes(const Points<T>& queries, Batch& batch, ThreadPool& pool) const {
  const std::int64_t m = batch.last - batch.first, width = images_->width(), d = points_.d;
  batch.guests.resize(m);
  batch.rows.resize(m * width);
  batch.home.resize(m);
  std::vector<Groups::Scratch> scratch(pool.size());
  pool.ranges(m, kRows, [&](std::int64_t first, std::int64_t last, int worker) {
    thread_local std::vector<float> images, products;
    images.assign((last - first) * d, 0.0f);
    for (std::int64_t i = first; i < last; ++i) {
      const Guest<T>& guest = batch.guests[i] = space_.guest(queries.row(batch.first + i));
      // What is far away is looked for around the middle: that its candidates are all as close as others, but
      // for rounding, is the best that can be said of it.
      if (guest.square < kFar) space_.image(guest, images.data() + (i - first) * d);
    }
    float* rows = batch.rows.data() + first * width;
    if (basis_.empty()) {
      std::copy(images.begin(), images.end(), rows);
    } else {
      multiply_rows(images.data(), last - first, basis_.data(), width, d, products);
      std::copy_n(products.data(), (last - first) * width, rows);
    }
    homes_->one(rows, last - first, scratch[worker], batch.home.data() + first);
  });
}

template <class T>
Neighbors CellIndex<T>::nearest_to(const Points<T>& queries, ThreadPool& pool, const Report& report) const {
  Neighbors result{std::vector<std::int32_t>(queries.n * k_), std::vector<float>(queries.n * k_)};
  std::vector<Visitor> visitors;
  for (int w = 0; w < pool.size(); ++w) visitors.emplace_back(*images_, *cells_, *coded_, product_);
  for (std::int64_t first = 0; first < queries.n; first += kBatch) {
    Batch batch{first, std::min(queries.n, first + kBatch), {}, {}, {}};
    find_homes(queries, batch, pool);
    // Queries by home, and where those of each begin.
    std::vector<std::int32_t> order(batch.home.size()), begins;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return batch.home[a] < batch.home[b]; });
    for (std::size_t s = 0; s < order.size(); ++s)
      if (s == 0 || batch.home[order[s]] != batch.home[order[s - 1]] ||
          static_cast<std::int64_t>(s) - begins.back() == kRows)
        begins.push_back(static_cast<std::int32_t>(s));
    begins.push_back(static_cast<std::int32_t>(order.size()));
    pool.run(
        static_cast<std::int64_t>(begins.size()) - 1,
        [&](std::int64_t group, int worker) {
          const auto guests =
              std::span<const std::int32_t>(order).subspan(begins[group], begins[group + 1] - begins[group]);
          Finish finish(*this, result);
          visitors[worker].visit(batch.home[guests[0]], guests, batch.rows.data(), effort_.visits,
                                 effort_.kept, [&](std::int32_t guest, std::span<const std::int32_t> slots) {
                                   finish(batch.guests[guest], first + guest, slots);
                                 });
        },
        [&](std::int64_t done, std::int64_t total) {
          if (report)
            report(first + (batch.last - first) * done / std::max<std::int64_t>(total, 1), queries.n);
        });
  }
  return result;
}

template <class T>
std::vector<std::uint64_t> row_hashes(const Points<T>& points, ThreadPool& pool) {
  std::vector<std::uint64_t> hashes(points.n);
  pool.ranges(points.n, kColumns, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i)
      hashes[i] = hash(points.row(i), static_cast<std::size_t>(points.d) * sizeof(T));
  });
  return hashes;
}

#define AGGLO_QUERIES(T)                                                                                \
  template Neighbors nearest_to(const Points<T>&, const Points<T>&, std::int64_t, Metric, Gemm<float>*, \
                                ThreadPool&, const Report&);                                            \
  template class CellIndex<T>;                                                                          \
  template std::vector<std::uint64_t> row_hashes(const Points<T>&, ThreadPool&);
AGGLO_EACH_NUMBER(AGGLO_QUERIES)

}  // namespace agglo
