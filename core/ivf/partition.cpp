#include "ivf/partition.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/random.hpp"
#include "ivf/seeds.hpp"
#include "simd/dot.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

// How the points are partitioned:
// If there are very many points, they are first partitioned by random seed points (ivf/seeds.hpp).
// Then k-means splits every part that is too large, recursively.
// Finally, a few rounds reassign each point to the list with the nearest centroid.

constexpr std::int64_t kRows = 512;     // rows in a chunk of parallel work
constexpr std::int64_t kBranches = 64;  // maximum number of children of a node in the tree of k-means splits
constexpr std::int64_t kLeaves = 512;   // with more lists than this, seed points are used first
constexpr std::int64_t kSample = 40;    // size of the training sample of k-means, per child
constexpr int kDepth = 16;              // at this depth, nodes are cut into lists without k-means

constexpr int kRounds = 3;  // rounds of reassignment
// The maximum number of these rounds if more than the share kMany of the points remains misassigned.
constexpr int kMoreRounds = 6;
// The share of misassigned points above which the rounds continue (see kMoreRounds).
constexpr double kMany = 0.02;
constexpr std::int64_t kTried = 1024;  // size of the sample that estimates the share of misassigned points
constexpr std::int64_t kClose = 24;    // number of nearest lists with which a point is compared
constexpr std::int64_t kFew = 2048;    // up to this number of lists, the partition is always thorough
constexpr std::int64_t kAll = 8192;    // up to this number of lists, outliers are compared with all lists
// The number of groups of lists that an outlier probes if there are more than kAll lists.
constexpr std::int64_t kProbes = 48;

constexpr int kPasses = 2;  // number of passes that remove outliers from the mean of a list
constexpr float kFar = 2;   // if a squared distance exceeds kFar times the median, the point is an outlier

float median(std::vector<float> values) {
  const auto at = values.begin() + static_cast<std::int64_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// A node of the tree of k-means splits.
struct Node {
  std::int64_t begin, end;  // the range of the node's positions
  Centroids centroids{0, {}, {}};
  std::vector<std::uint8_t> merged{};  // for each child, the child that it was merged into
  std::vector<std::int64_t> sizes{};   // sizes of the children after merging

  std::int64_t size() const { return end - begin; }
};

struct Scratch {
  std::vector<float> rows, products;
};

// Splits each part by k-means, recursively, until all parts are small enough to be inverted lists.
class Splitter {
 public:
  Splitter(const RowSource& source, Csr parts, std::int64_t size, std::int64_t min_size, std::uint64_t seed,
           ThreadPool& pool)
      : source_(source),
        size_(size),
        min_size_(min_size),
        seed_(seed),
        pool_(pool),
        scratch_(pool.size()),
        order_(std::move(parts.indices)),
        child_(source.n()),
        bounds_(std::move(parts.indptr)) {}

  // Returns the positions in each list. split() may be called only once.
  Csr split(const Report& report) {
    const std::int64_t n = source_.n();
    std::vector<Node> nodes;
    begins_.clear();
    for (std::size_t i = 0; i + 1 < bounds_.size(); ++i)
      if (bounds_[i + 1] - bounds_[i] <= Partition::max_size(size_))
        begins_.push_back(bounds_[i]);
      else
        nodes.push_back({bounds_[i], bounds_[i + 1]});
    for (int depth = 0; !nodes.empty(); ++depth) {
      if (depth == kDepth) {
        for (const Node& node : nodes) cut(node.begin, node.end);
        break;
      }
      assign(nodes, report);
      nodes = split_nodes(nodes);
    }
    std::sort(begins_.begin(), begins_.end());
    begins_.push_back(n);
    return {std::move(begins_), std::move(order_)};
  }

 private:
  // Runs k-means in every node, and assigns each position in a node to a child of the node.
  void assign(std::vector<Node>& nodes, const Report& report) {
    struct Chunk {
      std::int64_t node, begin, end;
    };
    std::vector<Chunk> chunks;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (std::int64_t b = nodes[i].begin; b < nodes[i].end; b += kRows)
        chunks.push_back({static_cast<std::int64_t>(i), b, std::min(b + kRows, nodes[i].end)});
    pool_.run(
        static_cast<std::int64_t>(nodes.size()),
        [&](std::int64_t i, int worker) { train(nodes[i], scratch_[worker]); }, report);
    pool_.run(
        static_cast<std::int64_t>(chunks.size()),
        [&](std::int64_t i, int worker) {
          const Chunk& chunk = chunks[i];
          const Centroids& centroids = nodes[chunk.node].centroids;
          Scratch& s = scratch_[worker];
          source_.gather(positions(chunk.begin, chunk.end), s.rows);
          multiply_rows(s.rows.data(), chunk.end - chunk.begin, centroids.rows.data(), centroids.count(),
                        source_.width(), s.products);
          for (std::int64_t b = chunk.begin; b < chunk.end; ++b)
            child_[b] = static_cast<std::uint8_t>(
                argmax_score(s.products.data() + (b - chunk.begin) * centroids.count(),
                             centroids.offsets.data(), centroids.count()));
        },
        report);
  }

  // Runs k-means on a random sample of the node's positions.
  // The sample has one position from each of many equal ranges.
  void train(Node& node, Scratch& s) const {
    const std::int64_t wanted = (node.size() + size_ - 1) / size_;
    std::int64_t branches = wanted;
    if (wanted > kBranches)
      for (branches = 2; branches < kBranches && branches * branches < wanted;) ++branches;
    const std::int64_t m = std::min(node.size(), kSample * branches);
    std::vector<std::int32_t> sample(m);
    std::uint64_t state = splitmix64(seed_ ^ splitmix64(static_cast<std::uint64_t>(node.begin)));
    for (std::int64_t i = 0; i < m; ++i) {
      const std::int64_t first = node.begin + i * node.size() / m,
                         last = node.begin + (i + 1) * node.size() / m;
      state = splitmix64(state);
      sample[i] = order_[first + static_cast<std::int64_t>(state % static_cast<std::uint64_t>(last - first))];
    }
    source_.gather(sample, s.rows);
    node.centroids = run_kmeans(s.rows.data(), m, source_.width(), branches);
  }

  // Sorts the positions in every node by child. Returns the children that are still too large.
  std::vector<Node> split_nodes(std::vector<Node>& nodes) {
    std::vector<std::int32_t> sorted(order_.size());
    pool_.run(static_cast<std::int64_t>(nodes.size()), [&](std::int64_t i, int worker) {
      Node& node = nodes[i];
      merge(node, scratch_[worker]);
      std::vector<std::int64_t> next(node.sizes.size());
      std::exclusive_scan(node.sizes.begin(), node.sizes.end(), next.begin(), node.begin);
      for (std::int64_t b = node.begin; b < node.end; ++b) sorted[next[node.merged[child_[b]]]++] = order_[b];
      std::copy(sorted.begin() + node.begin, sorted.begin() + node.end, order_.begin() + node.begin);
    });
    std::vector<Node> too_large;
    for (const Node& node : nodes) {
      std::int64_t begin = node.begin;
      for (const std::int64_t size : node.sizes) {
        if (size == 0) continue;
        if (size <= Partition::max_size(size_))
          begins_.push_back(begin);
        else if (size == node.size())
          cut(begin, begin + size);  // k-means cannot separate these points
        else
          too_large.push_back({begin, begin + size});
        begin += size;
      }
    }
    return too_large;
  }

  // Merges every child that is too small into the nearest child that is large enough.
  void merge(Node& node, Scratch& s) const {
    const std::int64_t count = node.centroids.count();
    std::vector<std::int64_t> sizes(count, 0);
    for (std::int64_t b = node.begin; b < node.end; ++b) ++sizes[child_[b]];
    multiply_rows(node.centroids.rows.data(), count, node.centroids.rows.data(), count, source_.width(),
                  s.products);
    node.merged.resize(count);
    node.sizes.assign(count, 0);
    for (std::int64_t c = 0; c < count; ++c) {
      std::int64_t into = c;
      if (sizes[c] < min_size_) {
        float best = -std::numeric_limits<float>::infinity();
        for (std::int64_t e = 0; e < count; ++e) {
          const float score = s.products[c * count + e] - node.centroids.offsets[e];
          if (sizes[e] < min_size_ || score <= best) continue;
          best = score;
          into = e;
        }
      }
      node.merged[c] = static_cast<std::uint8_t>(into);
      node.sizes[into] += sizes[c];
    }
  }

  // Cuts a range of positions into lists of consecutive positions.
  void cut(std::int64_t begin, std::int64_t end) {
    const std::int64_t pieces = (end - begin + size_ - 1) / size_;
    for (std::int64_t i = 0; i < pieces; ++i) begins_.push_back(begin + i * (end - begin) / pieces);
  }

  std::span<const std::int32_t> positions(std::int64_t begin, std::int64_t end) const {
    return std::span(order_).subspan(begin, end - begin);
  }

  const RowSource& source_;
  const std::int64_t size_, min_size_;
  const std::uint64_t seed_;
  ThreadPool& pool_;
  std::vector<Scratch> scratch_;
  std::vector<std::int32_t> order_;
  std::vector<std::uint8_t> child_;
  const std::vector<std::int64_t> bounds_;  // boundaries of the parts to split
  std::vector<std::int64_t> begins_;
};

}  // namespace

Partition::Partition(const RowSource& source, std::int64_t size, std::int64_t min_size, bool thorough,
                     bool by_product, std::uint64_t seed, ThreadPool& pool, const Report& report)
    : list_(source.n()), centroids_{source.width(), {}, {}} {
  const std::int64_t n = source.n();
  {
    Csr parts{{0, n}, std::vector<std::int32_t>(n)};
    if (n > kLeaves * size)
      parts = seed_partition(source, size, seed, pool, report);
    else
      std::iota(parts.indices.begin(), parts.indices.end(), 0);
    const Csr split = Splitter(source, std::move(parts), size, size / 4, seed, pool).split(report);
    for (std::int64_t list = 0; list < split.size(); ++list)
      for (const std::int32_t p : split.row(list)) list_[p] = static_cast<std::int32_t>(list);
    lists_ = group_by_label(std::span<const std::int32_t>(list_), split.size());
  }
  thorough_ = thorough || count() <= kFew;
  bool search_all = thorough_;  // whether to compare points with all lists
  for (int round = 0; round < (search_all ? kMoreRounds : kRounds) && count() > 1; ++round) {
    compute_centroids(source, true, pool, report);
    find_nearest_lists(kClose, pool, report);
    search_all = search_all && misassigned_share(source, pool) > kMany;
    reassign(closest_lists(source, search_all, pool, report), max_size(size), min_size);
  }
  // Under dot product, queries probe the lists whose centroids have the largest products with the query.
  compute_centroids(source, !by_product, pool, report);
  find_nearest_lists(kNearest, pool, report);
}

Partition::Partition(const RowSource& source, std::vector<std::int32_t> lists, bool by_product,
                     ThreadPool& pool, const Report& report)
    : list_(std::move(lists)), centroids_{source.width(), {}, {}} {
  lists_ =
      group_by_label(std::span<const std::int32_t>(list_), *std::max_element(list_.begin(), list_.end()) + 1);
  compute_centroids(source, !by_product, pool, report);
  find_nearest_lists(kNearest, pool, report);
}

void Partition::compute_centroids(const RowSource& source, bool squares, ThreadPool& pool,
                                  const Report& report) {
  const std::int64_t width = source.width();
  centroids_.rows.resize(count() * width);
  centroids_.offsets.assign(count(), 0.0f);
  pool.run(
      count(),
      [&](std::int64_t list, int) {
        thread_local std::vector<float> rows;
        source.gather(members(list), rows);
        const std::int64_t m = static_cast<std::int64_t>(members(list).size());
        float* centroid = centroids_.rows.data() + list * width;
        std::vector<float> distance(m, 0.0f);
        float limit = 0;
        for (int pass = 0;; ++pass) {
          std::fill_n(centroid, width, 0.0f);
          std::int64_t included = 0;
          for (std::int64_t i = 0; i < m; ++i) {
            if (distance[i] > limit) continue;
            ++included;
            for (std::int64_t j = 0; j < width; ++j) centroid[j] += rows[i * width + j];
          }
          for (std::int64_t j = 0; j < width; ++j) centroid[j] /= static_cast<float>(included);
          if (pass == kPasses) break;
          for (std::int64_t i = 0; i < m; ++i)
            distance[i] = quick_squared_distance(rows.data() + i * width, centroid, width);
          limit = kFar * median(distance);
          if (*std::max_element(distance.begin(), distance.end()) <= limit) break;
        }
        if (squares) centroids_.offsets[list] = half_squared_norm(centroid, width);
      },
      report);
}

void Partition::find_nearest_lists(std::int64_t n_nearest, ThreadPool& pool, const Report& report) {
  n_nearest_ = std::min(count(), n_nearest);
  nearest_ = nearest_centroids(centroids_, n_nearest_, pool, report);
}

// Estimates the share of misassigned points from a sample.
// A point is misassigned if its nearest centroid does not belong to a list near its own list.
double Partition::misassigned_share(const RowSource& source, ThreadPool& pool) const {
  const std::int64_t m = std::min(kTried, source.n());
  std::vector<std::int32_t> sample(m), found(source.n());
  for (std::int64_t s = 0; s < m; ++s) sample[s] = static_cast<std::int32_t>(s * source.n() / m);
  assign_to_centroids(source, sample, centroids_, count(), pool, {}, found);
  const std::int64_t misassigned = std::count_if(sample.begin(), sample.end(), [&](std::int32_t p) {
    const auto around = nearest(list(p));
    return std::find(around.begin(), around.end(), found[p]) == around.end();
  });
  return static_cast<double>(misassigned) / static_cast<double>(m);
}

// Returns for every position the list with the nearest centroid.
// A point is compared with the lists near its own list. An outlier is compared with all lists.
// If `search_all` is true, every point is treated as an outlier.
// If there are many lists, an outlier is compared only with the lists in its nearest groups of lists.
std::vector<std::int32_t> Partition::closest_lists(const RowSource& source, bool search_all, ThreadPool& pool,
                                                   const Report& report) const {
  std::vector<std::int32_t> lists(source.n(), -1), outliers;
  std::vector<Scratch> scratch(pool.size());
  const auto compare_nearest = [&](std::int64_t list, int worker) {
    Scratch& s = scratch[worker];
    const auto own = members(list), around = nearest(list);
    const std::int64_t m = static_cast<std::int64_t>(own.size()), width = source.width();
    Centroids centroids{width, {}, {}};
    for (const std::int32_t e : around) centroids.add(centroid(e), offset(e));
    source.gather(own, s.rows);
    multiply_rows(s.rows.data(), m, centroids.rows.data(), n_nearest_, width, s.products);
    std::vector<float> distance(m);
    for (std::int64_t i = 0; i < m; ++i) {
      float* products = s.products.data() + i * n_nearest_;
      const std::int64_t c = argmax_score(products, centroids.offsets.data(), n_nearest_);
      distance[i] = half_squared_norm(s.rows.data() + i * width, width) - products[c];
      lists[own[i]] = around[c];
    }
    const float limit = kFar * median(distance);
    for (std::int64_t i = 0; i < m; ++i)
      if (distance[i] > limit) lists[own[i]] = -1;
  };
  if (!search_all) pool.run(count(), compare_nearest, report);
  for (std::int64_t p = 0; p < source.n(); ++p)
    if (lists[p] < 0) outliers.push_back(static_cast<std::int32_t>(p));
  if (!outliers.empty())
    assign_to_centroids(source, outliers, centroids_, count() <= kAll ? count() : kProbes, pool, report,
                        lists);
  return lists;
}

// Moves each point to its list in `closest`, in the order of positions.
// If a move would make a list too small or too large, the point stays in its list.
void Partition::reassign(std::span<const std::int32_t> closest, std::int64_t max_size,
                         std::int64_t min_size) {
  std::vector<std::int64_t> sizes(count());
  for (std::int64_t list = 0; list < count(); ++list) sizes[list] = lists_.row_size(list);
  for (std::size_t p = 0; p < list_.size(); ++p) {
    const std::int32_t from = list_[p], to = closest[p];
    if (to == from || sizes[to] >= max_size || sizes[from] <= min_size) continue;
    list_[p] = to;
    --sizes[from];
    ++sizes[to];
  }
  lists_ = group_by_label(std::span<const std::int32_t>(list_), count());
}

}  // namespace agglo
