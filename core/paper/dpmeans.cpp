#include "paper/dpmeans.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ivf/assign.hpp"
#include "simd/dot.hpp"

namespace agglo {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::int64_t kBatch = 256;    // points that may open a cluster, looked at together
constexpr std::int64_t kGrain = 64;     // clusters in a chunk of work
constexpr std::size_t kSettled = 8192;  // points that meet centres together which they may not have seen yet

// The points of each cluster in turn, in ascending order; cluster k has those from bounds[k] to bounds[k +
// 1].
struct Members {
  std::vector<std::int64_t> bounds;
  std::vector<std::int32_t> points;

  Members(std::span<const std::int32_t> labels, std::int64_t k) : bounds(k + 1, 0), points(labels.size()) {
    for (const std::int32_t label : labels) ++bounds[label + 1];
    std::partial_sum(bounds.begin(), bounds.end(), bounds.begin());
    std::vector<std::int64_t> next(bounds.begin(), bounds.end() - 1);
    for (std::size_t i = 0; i < labels.size(); ++i) points[next[labels[i]]++] = static_cast<std::int32_t>(i);
  }

  std::span<const std::int32_t> of(std::int64_t k) const {
    return std::span(points).subspan(bounds[k], bounds[k + 1] - bounds[k]);
  }
};

template <class T>
void take_mean(const Points<T>& points, std::span<const std::int32_t> members, double* mean) {
  std::fill_n(mean, points.d, 0.0);
  for (const std::int32_t i : members)
    for (std::int64_t j = 0; j < points.d; ++j) mean[j] += points.row(i)[j];
  for (std::int64_t j = 0; j < points.d; ++j) mean[j] /= static_cast<double>(members.size());
}

// How it works. The centres that a pass begins with stand still, so all points meet them at once, by blocks.
// Only what the pass itself opens must wait its turn. Points beyond lambda of all centres met so far are the
// candidates; a batch of them is walked through in order to see which do open a cluster, and when some
// batches have opened enough, all points after them meet the new centres, again by blocks.
template <class T>
class Passes {
 public:
  Passes(const Points<T>& points, std::span<const std::int32_t> order, std::span<const double> start,
         const DpMeansPlan& plan, Gemm<float>* sgemm, ThreadPool& pool, const Report& report)
      : points_(points),
        order_(order),
        plan_(plan),
        pool_(pool),
        report_(report),
        scan_(points, sgemm, pool),
        centers_(start.begin(), start.end()),
        within_(start.size() / points.d, 0.0),
        unseen_(start.size() / points.d, points.n),
        label_(points.n, -1),
        square_(points.n, kFar) {}

  DpMeans run() {
    DpMeans result;
    result.converged = false;
    double before = kFar;
    while (!result.converged && static_cast<std::int64_t>(result.history.size()) < plan_.max_iter) {
      done_ = static_cast<std::int64_t>(result.history.size());
      const std::vector<std::int32_t> old = label_;
      const std::int64_t known = count();
      meet_standing();
      open();
      const bool changed = settle(old, known);
      const double cost = std::accumulate(within_.begin(), within_.end(), 0.0);
      const double now = cost + (count() > 0 ? plan_.lambda * static_cast<double>(count()) : 0.0);
      result.history.push_back(now);
      const bool little = result.history.size() > 1 && before - now <= plan_.tol * before;
      result.converged = !changed || little;
      before = now;
    }
    result.labels = std::move(label_);
    result.centers = std::move(centers_);
    return result;
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(within_.size()); }

  Report tick() const {
    return [this](std::int64_t, std::int64_t) {
      if (report_) report_(done_, plan_.max_iter);
    };
  }

  // Every point's nearest centre among those that the pass begins with. A point whose own centre is where it
  // was can only have come nearer to those that it has not seen there.
  void meet_standing() {
    std::vector<std::int32_t> restless, settled;
    std::int64_t begin = 0;
    const auto meet_unseen = [&](std::int64_t end) {
      std::vector<std::int32_t> ids;
      for (std::int32_t k = 0; k < count(); ++k)
        if (unseen_[k] > begin) ids.push_back(k);
      scan_.nearest(settled, centers_.data(), ids, square_, label_, pool_, tick());
      settled.clear();
      begin = end;
    };
    for (std::int64_t place = 0; place < points_.n; ++place) {
      const std::int32_t i = order_[place];
      if (label_[i] >= 0 && unseen_[label_[i]] < points_.n) {
        settled.push_back(i);
      } else {
        restless.push_back(i);
        square_[i] = kFar;
        label_[i] = -1;
      }
      if (settled.size() == kSettled || place + 1 == points_.n) meet_unseen(place + 1);
    }
    scan_.nearest(restless, centers_.data(), index_range(0, count()), square_, label_, pool_, tick());
  }

  bool candidate(std::int64_t place) const {
    const std::int32_t i = order_[place];
    return label_[i] < 0 || square_[i] > plan_.lambda;
  }

  void open() {
    std::int64_t place = 0;
    while (place < points_.n) {
      const std::int64_t first = count();
      while (place < points_.n && count() - first < kBatch) place = window(place, first);
      show(first);
    }
  }

  // Decides about the candidates of the next epoch, or when serial the next of them, and returns the place
  // after them. What was opened from `first` on has not been shown to all points yet.
  std::int64_t window(std::int64_t place, std::int64_t first) {
    std::vector<std::int32_t> waiting;
    std::int64_t end = place;
    if (plan_.epoch == 1) {
      for (; end < points_.n && static_cast<std::int64_t>(waiting.size()) < kBatch; ++end)
        if (candidate(end)) waiting.push_back(static_cast<std::int32_t>(end));
    } else {
      end = std::min(points_.n, place + plan_.epoch);
      for (std::int64_t p = place; p < end; ++p)
        if (candidate(p)) waiting.push_back(static_cast<std::int32_t>(p));
    }
    const std::int64_t here = count();
    meet(waiting, first, here);
    std::erase_if(waiting, [&](std::int32_t p) { return !candidate(p); });
    for (std::size_t begin = 0; begin < waiting.size(); begin += kBatch) {
      const auto batch = std::span<const std::int32_t>(waiting).subspan(
          begin, std::min<std::size_t>(kBatch, waiting.size() - begin));
      meet(batch, here, count());
      walk(batch, end);
    }
    return end;
  }

  // The points at some places and the centres [from, to).
  void meet(std::span<const std::int32_t> places, std::int64_t from, std::int64_t to) {
    std::vector<std::int32_t> rows;
    for (const std::int32_t p : places) rows.push_back(order_[p]);
    scan_.nearest(rows, centers_.data(), index_range(from, to), square_, label_, pool_, tick());
  }

  // One candidate after the other.
  void walk(std::span<const std::int32_t> places, std::int64_t end) {
    const std::int64_t d = points_.d;
    for (std::size_t s = 0; s < places.size(); ++s) {
      if (!candidate(places[s])) continue;
      const std::int32_t i = order_[places[s]];
      const T* x = points_.row(i);
      label_[i] = static_cast<std::int32_t>(count());
      square_[i] = 0;
      centers_.insert(centers_.end(), x, x + d);
      within_.push_back(0);
      unseen_.push_back(plan_.epoch == 1 ? places[s] + 1 : end);
      for (std::size_t later = s + 1; later < places.size(); ++later) {
        const std::int32_t j = order_[places[later]];
        const double square = squared_distance(x, points_.row(j), d);
        if (square >= square_[j]) continue;
        square_[j] = square;
        label_[j] = label_[i];
      }
    }
  }

  // Shows the centres from `first` on to all points that come late enough to see them.
  void show(std::int64_t first) {
    if (count() == first) return;
    const std::vector<std::int32_t> ids = index_range(first, count());
    const auto seen_from = std::span<const std::int64_t>(unseen_).subspan(first);
    // Up to the last of them, a point sees the first few only.
    const std::int64_t begin = seen_from.front(), end = seen_from.back();
    const std::int64_t strips = (end - begin + scan_.block() - 1) / scan_.block();
    scratch_.resize(pool_.size());
    pool_.run(
        strips,
        [&](std::int64_t strip, int worker) {
          const std::int64_t from = begin + strip * scan_.block(), to = std::min(end, from + scan_.block());
          const auto rows = order_.subspan(from, to - from);
          const auto few = std::upper_bound(seen_from.begin(), seen_from.end(), to - 1) - seen_from.begin();
          scan_.pairs(
              rows, centers_.data(), std::span(ids).first(few), false, scratch_[worker],
              [&](std::int64_t r) { return square_[rows[r]]; },
              [&](std::int64_t r, std::int64_t c, double square) {
                if (from + r < seen_from[c] || square >= square_[rows[r]]) return;
                square_[rows[r]] = square;
                label_[rows[r]] = ids[c];
              });
        },
        tick());
    scan_.nearest(order_.subspan(end), centers_.data(), ids, square_, label_, pool_, tick());
  }

  // Makes means of the clusters that points have joined or left, and drops empty ones; whether there were
  // any.
  bool settle(const std::vector<std::int32_t>& old, std::int64_t known) {
    std::vector<char> touched(count(), false);
    std::fill(touched.begin() + known, touched.end(), true);
    bool changed = count() > known;
    for (std::int64_t i = 0; i < points_.n; ++i) {
      if (label_[i] == old[i]) continue;
      changed = touched[label_[i]] = true;
      if (old[i] >= 0) touched[old[i]] = true;
    }
    const Members members(label_, count());
    for (std::int64_t k = 0; k < count(); ++k)  // a start that nobody came to goes, too
      if (members.of(k).empty()) touched[k] = changed = true;
    pool_.ranges(count(), kGrain, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t k = begin; k < end; ++k)
        if (touched[k]) move(k, members.of(k));
    });
    for (std::int64_t k = 0; k < known; ++k) unseen_[k] = touched[k] ? points_.n : 0;
    for (std::int64_t k = known; k < count(); ++k)
      if (members.of(k).size() > 1) unseen_[k] = points_.n;  // alone, it is where it was opened
    drop_empty(members);
    return changed;
  }

  // Puts a centre where the mean of its members is.
  void move(std::int64_t k, std::span<const std::int32_t> members) {
    const std::int64_t d = points_.d;
    double* mean = centers_.data() + k * d;
    within_[k] = 0;
    if (!members.empty()) take_mean(points_, members, mean);
    if (members.size() < 2) return;
    std::vector<double> row(d);
    for (const std::int32_t i : members) {
      std::copy_n(points_.row(i), d, row.begin());
      within_[k] += squared_distance(row.data(), mean, d);
    }
  }

  void drop_empty(const Members& members) {
    std::vector<std::int32_t> name(count());
    std::int64_t kept = 0;
    for (std::int64_t k = 0; k < count(); ++k) {
      if (members.of(k).empty()) continue;
      name[k] = static_cast<std::int32_t>(kept);
      if (kept < k) {
        std::copy_n(centers_.begin() + k * points_.d, points_.d, centers_.begin() + kept * points_.d);
        within_[kept] = within_[k];
        unseen_[kept] = unseen_[k];
      }
      ++kept;
    }
    centers_.resize(kept * points_.d);
    within_.resize(kept);
    unseen_.resize(kept);
    for (std::int32_t& k : label_) k = name[k];
  }

  const Points<T> points_;
  const std::span<const std::int32_t> order_;
  const DpMeansPlan plan_;
  ThreadPool& pool_;
  const Report& report_;
  CenterScan<T> scan_;
  std::vector<double> centers_;
  std::vector<double> within_;        // a cluster's sum of squared distances to its mean
  std::vector<std::int32_t> label_;   // of each point, and
  std::vector<double> square_;        // its squared distance to that centre
  std::vector<std::int64_t> unseen_;  // points at places before that have not seen the centre where it is
  std::vector<typename CenterScan<T>::Scratch> scratch_;
  std::int64_t done_ = 0;
};

}  // namespace

template <class T>
DpMeans dp_means(const Points<T>& points, std::span<const std::int32_t> order, std::span<const double> start,
                 const DpMeansPlan& plan, Gemm<float>* sgemm, ThreadPool& pool, const Report& report) {
  return Passes<T>(points, order, start, plan, sgemm, pool, report).run();
}

template <class T>
std::vector<double> cluster_means(const Points<T>& points, std::span<const std::int32_t> labels,
                                  std::int64_t k, ThreadPool& pool) {
  const Members members(labels, k);
  std::vector<double> means(k * points.d);
  pool.ranges(k, kGrain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t c = begin; c < end; ++c) take_mean(points, members.of(c), means.data() + c * points.d);
  });
  return means;
}

template DpMeans dp_means(const Points<float>&, std::span<const std::int32_t>, std::span<const double>,
                          const DpMeansPlan&, Gemm<float>*, ThreadPool&, const Report&);
template DpMeans dp_means(const Points<double>&, std::span<const std::int32_t>, std::span<const double>,
                          const DpMeansPlan&, Gemm<float>*, ThreadPool&, const Report&);
template std::vector<double> cluster_means(const Points<float>&, std::span<const std::int32_t>, std::int64_t,
                                           ThreadPool&);
template std::vector<double> cluster_means(const Points<double>&, std::span<const std::int32_t>, std::int64_t,
                                           ThreadPool&);

}  // namespace agglo
