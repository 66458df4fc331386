#include "paper/dpmeans.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/csr.hpp"
#include "paper/center_scan.hpp"
#include "simd/dot.hpp"

namespace agglo::paper {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::int64_t kBatch = 256;   // number of candidates per batch
constexpr std::int64_t kGrain = 64;    // number of clusters per parallel task
constexpr std::size_t kStable = 8192;  // number of points per batch, for points whose centers have not moved

void compute_mean(const AnyPoints& points, std::span<const std::int32_t> members, double* mean) {
  std::fill_n(mean, points.d, 0.0);
  std::vector<double> row(points.d);
  for (const std::int32_t i : members) {
    widen_row(points, i, row.data());
    for (std::int64_t j = 0; j < points.d; ++j) mean[j] += row[j];
  }
  for (std::int64_t j = 0; j < points.d; ++j) mean[j] /= static_cast<double>(members.size());
}

// The passes of DP-means.
//
// Old centers do not move during a pass, so all points are compared with old centers in blocks.
// Points whose squared distance to all centers exceeds λ are candidates for new clusters.
// Whether a candidate opens a cluster depends on earlier candidates. So this is decided for one candidate
// after the other. After several batches of candidates, all later points are compared with the new centers in
// blocks.
class Passes {
 public:
  Passes(const AnyPoints& points, std::span<const std::int32_t> order, std::span<const double> start,
         const DpMeansPlan& plan, Gemm<float>* sgemm, ThreadPool& pool, const Report& report)
      : points_(points),
        order_(order),
        plan_(plan),
        pool_(pool),
        report_(report),
        scan_(points, sgemm, pool),
        centers_(start.begin(), start.end()),
        within_(start.size() / points.d, 0.0),
        label_(points.n, -1),
        square_(points.n, kFar),
        unseen_(start.size() / points.d, points.n) {}

  DpMeans run() {
    DpMeans result;
    result.converged = false;
    double before = kFar;
    while (!result.converged && static_cast<std::int64_t>(result.history.size()) < plan_.max_iter) {
      done_ = static_cast<std::int64_t>(result.history.size());
      const std::vector<std::int32_t> old = label_;
      const std::int64_t known = count();
      assign_to_known_centers();
      open_clusters();
      const bool changed = update_means(old, known);
      const double cost = std::accumulate(within_.begin(), within_.end(), 0.0);
      const double now = cost + (count() > 0 ? plan_.lam * static_cast<double>(count()) : 0.0);
      result.history.push_back(now);
      const bool small_gain = result.history.size() > 1 && before - now <= plan_.tol * before;
      result.converged = !changed || small_gain;
      before = now;
    }
    result.labels = std::move(label_);
    result.centers = std::move(centers_);
    return result;
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(within_.size()); }

  Report report_pass() const {
    return [this](std::int64_t, std::int64_t) {
      if (report_) report_(done_, plan_.max_iter);
    };
  }

  // Assigns every point to its nearest old center. Old centers are those from before this pass.
  // If the center of a point has not moved, the point skips some centers: those that it has been compared
  // with since they last moved.
  void assign_to_known_centers() {
    std::vector<std::int32_t> moved, local_search;
    std::int64_t begin = 0;
    const auto assign_stable = [&](std::int64_t end) {
      std::vector<std::int32_t> ids;
      for (std::int32_t k = 0; k < count(); ++k)
        if (unseen_[k] > begin) ids.push_back(k);
      scan_.nearest(local_search, centers_.data(), ids, square_, label_, pool_, report_pass());
      local_search.clear();
      begin = end;
    };
    for (std::int64_t place = 0; place < points_.n; ++place) {
      const std::int32_t i = order_[place];
      if (label_[i] >= 0 && unseen_[label_[i]] < points_.n) {
        local_search.push_back(i);
      } else {
        moved.push_back(i);
        square_[i] = kFar;
        label_[i] = -1;
      }
      if (local_search.size() == kStable || place + 1 == points_.n) assign_stable(place + 1);
    }
    scan_.nearest(moved, centers_.data(), index_range(0, count()), square_, label_, pool_, report_pass());
  }

  bool is_candidate(std::int64_t place) const {
    const std::int32_t i = order_[place];
    return label_[i] < 0 || square_[i] > plan_.lam;
  }

  // Opens new clusters in this pass, and assigns points to them.
  void open_clusters() {
    std::int64_t place = 0;
    while (place < points_.n) {
      const std::int64_t first = count();
      while (place < points_.n && count() - first < kBatch) place = decide_window(place, first);
      assign_to_new_centers(first);
    }
  }

  // Decides which candidates of the next epoch open a new cluster, and assigns the others to their nearest
  // center. If plan.epoch is 1, does so for the next batch of candidates.
  // The epoch or batch starts at position `place` of order_. Returns the position after its end.
  // Clusters with ids >= `first` have not been compared with all points yet.
  std::int64_t decide_window(std::int64_t place, std::int64_t first) {
    std::vector<std::int32_t> waiting;
    std::int64_t end = place;
    if (plan_.epoch == 1) {
      for (; end < points_.n && static_cast<std::int64_t>(waiting.size()) < kBatch; ++end)
        if (is_candidate(end)) waiting.push_back(static_cast<std::int32_t>(end));
    } else {
      end = std::min(points_.n, place + plan_.epoch);
      for (std::int64_t p = place; p < end; ++p)
        if (is_candidate(p)) waiting.push_back(static_cast<std::int32_t>(p));
    }
    const std::int64_t here = count();
    assign(waiting, first, here);
    std::erase_if(waiting, [&](std::int32_t p) { return !is_candidate(p); });
    for (std::size_t begin = 0; begin < waiting.size(); begin += kBatch) {
      const auto batch = std::span<const std::int32_t>(waiting).subspan(
          begin, std::min<std::size_t>(kBatch, waiting.size() - begin));
      assign(batch, here, count());
      decide(batch, end);
    }
    return end;
  }

  // Compares the points at positions `places` of order_ with the centers [from, to).
  // If one of these centers is nearer to a point than the point's current center, assigns the point to this
  // center.
  void assign(std::span<const std::int32_t> places, std::int64_t from, std::int64_t to) {
    std::vector<std::int32_t> rows;
    for (const std::int32_t p : places) rows.push_back(order_[p]);
    scan_.nearest(rows, centers_.data(), index_range(from, to), square_, label_, pool_, report_pass());
  }

  // For one candidate after the other: if the candidate is still far from all centers, opens a cluster for
  // it.
  void decide(std::span<const std::int32_t> places, std::int64_t end) {
    const std::int64_t d = points_.d;
    std::vector<double> x(d), row(d);
    for (std::size_t s = 0; s < places.size(); ++s) {
      if (!is_candidate(places[s])) continue;
      const std::int32_t i = order_[places[s]];
      widen_row(points_, i, x.data());
      label_[i] = static_cast<std::int32_t>(count());
      square_[i] = 0;
      centers_.insert(centers_.end(), x.begin(), x.end());
      within_.push_back(0);
      unseen_.push_back(plan_.epoch == 1 ? places[s] + 1 : end);
      for (std::size_t later = s + 1; later < places.size(); ++later) {
        const std::int32_t j = order_[places[later]];
        widen_row(points_, j, row.data());
        const double square = squared_distance(x.data(), row.data(), d);
        if (square >= square_[j]) continue;
        square_[j] = square;
        label_[j] = label_[i];
      }
    }
  }

  // Compares points with the centers whose ids are at least `first`.
  // If one of these centers is nearer to a point than the point's current center, assigns the point to this
  // center. A point is compared only with centers that were opened before its position in order_.
  void assign_to_new_centers(std::int64_t first) {
    if (count() == first) return;
    const std::vector<std::int32_t> ids = index_range(first, count());
    const auto seen_from = std::span<const std::int64_t>(unseen_).subspan(first);
    // When the points at positions [begin, end) were visited, only some of these centers were open. All of
    // them were open for later positions.
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
        report_pass());
    scan_.nearest(order_.subspan(end), centers_.data(), ids, square_, label_, pool_, report_pass());
  }

  // Recomputes the means of changed clusters, and removes empty clusters.
  // Returns whether any cluster has changed.
  bool update_means(const std::vector<std::int32_t>& old, std::int64_t known) {
    std::vector<char> changed_clusters(count(), false);
    std::fill(changed_clusters.begin() + known, changed_clusters.end(), true);
    bool changed = count() > known;
    for (std::int64_t i = 0; i < points_.n; ++i) {
      if (label_[i] == old[i]) continue;
      changed = true;
      changed_clusters[label_[i]] = true;
      if (old[i] >= 0) changed_clusters[old[i]] = true;
    }
    const Csr members = group_by_label<std::int32_t>(label_, count());
    // Clusters without points change, too. Initial centers may have no points.
    for (std::int64_t k = 0; k < count(); ++k)
      if (members.row(k).empty()) changed_clusters[k] = changed = true;
    pool_.ranges(count(), kGrain, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t k = begin; k < end; ++k)
        if (changed_clusters[k]) update_mean(k, members.row(k));
    });
    for (std::int64_t k = 0; k < known; ++k) unseen_[k] = changed_clusters[k] ? points_.n : 0;
    for (std::int64_t k = known; k < count(); ++k)
      // The center of a new cluster is its first point. If the cluster has only one point, the center has not
      // moved.
      if (members.row(k).size() > 1) unseen_[k] = points_.n;
    remove_empty(members);
    return changed;
  }

  // Recomputes the mean of cluster k, and the sum of squared distances to this mean.
  void update_mean(std::int64_t k, std::span<const std::int32_t> members) {
    const std::int64_t d = points_.d;
    double* mean = centers_.data() + k * d;
    within_[k] = 0;
    if (!members.empty()) compute_mean(points_, members, mean);
    if (members.size() < 2) return;
    std::vector<double> row(d);
    for (const std::int32_t i : members) {
      widen_row(points_, i, row.data());
      within_[k] += squared_distance(row.data(), mean, d);
    }
  }

  void remove_empty(const Csr& members) {
    std::vector<std::int32_t> new_id(count());
    std::int64_t kept = 0;
    for (std::int64_t k = 0; k < count(); ++k) {
      if (members.row(k).empty()) continue;
      new_id[k] = static_cast<std::int32_t>(kept);
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
    for (std::int32_t& k : label_) k = new_id[k];
  }

  const AnyPoints points_;
  const std::span<const std::int32_t> order_;
  const DpMeansPlan plan_;
  ThreadPool& pool_;
  const Report& report_;
  CenterScan scan_;
  std::vector<double> centers_;
  std::vector<double> within_;       // sum of squared distances to the mean of each cluster
  std::vector<std::int32_t> label_;  // cluster of each point
  std::vector<double> square_;       // squared distance of each point to its center
  // For each center, a position in order_.
  // Points before this position have not been compared with the center since its last move.
  std::vector<std::int64_t> unseen_;
  std::vector<CenterScan::Scratch> scratch_;
  std::int64_t done_ = 0;
};

}  // namespace

DpMeans solve_dp_means(const AnyPoints& points, std::span<const std::int32_t> order,
                       std::span<const double> start, const DpMeansPlan& plan, Gemm<float>* sgemm,
                       ThreadPool& pool, const Report& report) {
  return Passes(points, order, start, plan, sgemm, pool, report).run();
}

std::vector<double> compute_cluster_means(const AnyPoints& points, std::span<const std::int32_t> labels,
                                          std::int64_t k, ThreadPool& pool) {
  const Csr members = group_by_label(labels, k);
  std::vector<double> means(k * points.d);
  pool.ranges(k, kGrain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t c = begin; c < end; ++c)
      compute_mean(points, members.row(c), means.data() + c * points.d);
  });
  return means;
}

}  // namespace agglo::paper
