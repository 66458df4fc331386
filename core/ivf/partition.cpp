#include "ivf/partition.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "ivf/seeds.hpp"
#include "simd/dot.hpp"
#include "simd/product.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows = 512;     // rows in a chunk of parallel work
constexpr std::int64_t kBranches = 64;  // parts that a node is split into, at most
constexpr std::int64_t kLeaves = 512;   // cells that a tree of splits may lead to
constexpr std::int64_t kSample = 40;    // points for every part that its centre is found from
constexpr int kDepth = 16;              // beyond it points that will not part are cut up as they lie
constexpr int kRounds = 3;              // of moving places to closer cells,
constexpr int kMoreRounds = 6;          // or so many while many are astray:
constexpr double kMany = 0.02;          // this share
constexpr std::int64_t kTried = 1024;   // of a sample of so many
constexpr int kPasses = 2;              // in which members far from a cell's centre are left out of it
constexpr std::int64_t kClose = 24;     // cells that it looks for a closer one among,
constexpr std::int64_t kFew = 2048;     // cells, so that looking at all of them costs little,
constexpr std::int64_t kAll = 8192;     // or less than looking for groups of them,
constexpr std::int64_t kProbes = 48;    // and groups of cells, if it is a stranger
constexpr float kFar = 2;               // times the middle square of distances: beyond it are strangers

std::uint64_t scrambled(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

float middle(std::vector<float> values) {
  const auto at = values.begin() + static_cast<std::int64_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

struct Node {
  std::int64_t begin, end;  // in the order
  Centers centers{0, {}, {}};
  std::vector<std::uint8_t> merged{};  // the part that a part is put into
  std::vector<std::int64_t> sizes{};   // of the parts

  std::int64_t size() const { return end - begin; }
};

struct Scratch {
  std::vector<float> images, products;
};

class Splitter {
 public:
  Splitter(const Images& images, Parts parts, std::int64_t size, std::int64_t least, std::uint64_t seed,
           ThreadPool& pool)
      : images_(images),
        size_(size),
        least_(least),
        seed_(seed),
        pool_(pool),
        scratch_(pool.size()),
        order_(std::move(parts.order)),
        part_(images.n()),
        bounds_(std::move(parts.begins)) {}

  // Puts the places in an order in which cells are consecutive, and returns where each begins.
  std::vector<std::int64_t> split(const Report& report) {
    const std::int64_t n = images_.n();
    std::vector<Node> nodes;
    begins_.clear();
    for (std::size_t i = 0; i + 1 < bounds_.size(); ++i)
      if (bounds_[i + 1] - bounds_[i] <= Partition::most_of(size_))
        begins_.push_back(bounds_[i]);
      else
        nodes.push_back({bounds_[i], bounds_[i + 1]});
    for (int depth = 0; !nodes.empty(); ++depth) {
      if (depth == kDepth) {
        for (const Node& node : nodes) cut(node.begin, node.end);
        break;
      }
      assign(nodes, report);
      nodes = parts(nodes);
    }
    std::sort(begins_.begin(), begins_.end());
    begins_.push_back(n);
    return begins_;
  }

  const std::vector<std::int32_t>& order() const { return order_; }

 private:
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
          const Centers& centers = nodes[chunk.node].centers;
          Scratch& s = scratch_[worker];
          images_.gather(places(chunk.begin, chunk.end), s.images);
          multiply_rows(s.images.data(), chunk.end - chunk.begin, centers.rows.data(), centers.count(),
                        images_.width(), s.products);
          for (std::int64_t b = chunk.begin; b < chunk.end; ++b)
            part_[b] =
                static_cast<std::uint8_t>(closest(s.products.data() + (b - chunk.begin) * centers.count(),
                                                  centers.offsets.data(), centers.count()));
        },
        report);
  }

  // Light k-means on a sample that is spread evenly over the node.
  void train(Node& node, Scratch& s) const {
    const std::int64_t wanted = (node.size() + size_ - 1) / size_;
    std::int64_t branches = wanted;
    if (wanted > kBranches)
      for (branches = 2; branches < kBranches && branches * branches < wanted;) ++branches;
    const std::int64_t m = std::min(node.size(), kSample * branches);
    std::vector<std::int32_t> sample(m);
    std::uint64_t chance = scrambled(seed_ ^ scrambled(static_cast<std::uint64_t>(node.begin)));
    for (std::int64_t i = 0; i < m; ++i) {
      const std::int64_t first = node.begin + i * node.size() / m,
                         last = node.begin + (i + 1) * node.size() / m;
      chance = scrambled(chance);
      sample[i] =
          order_[first + static_cast<std::int64_t>(chance % static_cast<std::uint64_t>(last - first))];
    }
    images_.gather(sample, s.images);
    node.centers = light_means(s.images.data(), m, images_.width(), branches);
  }

  // Groups every node's places by part. Parts that are still too large are returned.
  std::vector<Node> parts(std::vector<Node>& nodes) {
    std::vector<std::int32_t> grouped(order_.size());
    pool_.run(static_cast<std::int64_t>(nodes.size()), [&](std::int64_t i, int worker) {
      Node& node = nodes[i];
      merge(node, scratch_[worker]);
      std::vector<std::int64_t> place(node.sizes.size());
      std::exclusive_scan(node.sizes.begin(), node.sizes.end(), place.begin(), node.begin);
      for (std::int64_t b = node.begin; b < node.end; ++b)
        grouped[place[node.merged[part_[b]]]++] = order_[b];
      std::copy(grouped.begin() + node.begin, grouped.begin() + node.end, order_.begin() + node.begin);
    });
    std::vector<Node> left;
    for (const Node& node : nodes) {
      std::int64_t begin = node.begin;
      for (const std::int64_t size : node.sizes) {
        if (size == 0) continue;
        if (size <= Partition::most_of(size_))
          begins_.push_back(begin);
        else if (size == node.size())
          cut(begin, begin + size);  // too much alike
        else
          left.push_back({begin, begin + size});
        begin += size;
      }
    }
    return left;
  }

  // Small parts join the closest that is not small.
  void merge(Node& node, Scratch& s) const {
    const std::int64_t count = node.centers.count();
    std::vector<std::int64_t> sizes(count, 0);
    for (std::int64_t b = node.begin; b < node.end; ++b) ++sizes[part_[b]];
    multiply_rows(node.centers.rows.data(), count, node.centers.rows.data(), count, images_.width(),
                  s.products);
    node.merged.resize(count);
    node.sizes.assign(count, 0);
    for (std::int64_t c = 0; c < count; ++c) {
      std::int64_t into = c;
      if (sizes[c] < least_) {
        float most = -std::numeric_limits<float>::infinity();
        for (std::int64_t e = 0; e < count; ++e) {
          const float closeness = s.products[c * count + e] - node.centers.offsets[e];
          if (sizes[e] < least_ || closeness <= most) continue;
          most = closeness;
          into = e;
        }
      }
      node.merged[c] = static_cast<std::uint8_t>(into);
      node.sizes[into] += sizes[c];
    }
  }

  void cut(std::int64_t begin, std::int64_t end) {
    const std::int64_t pieces = (end - begin + size_ - 1) / size_;
    for (std::int64_t i = 0; i < pieces; ++i) begins_.push_back(begin + i * (end - begin) / pieces);
  }

  std::span<const std::int32_t> places(std::int64_t begin, std::int64_t end) const {
    return std::span(order_).subspan(begin, end - begin);
  }

  const Images& images_;
  const std::int64_t size_, least_;
  const std::uint64_t seed_;
  ThreadPool& pool_;
  std::vector<Scratch> scratch_;
  std::vector<std::int32_t> order_;
  std::vector<std::uint8_t> part_;
  const std::vector<std::int64_t> bounds_;  // of the parts that it begins with
  std::vector<std::int64_t> begins_;
};

}  // namespace

Partition::Partition(const Images& images, std::int64_t size, std::int64_t least, bool thorough,
                     bool by_product, std::uint64_t seed, ThreadPool& pool, const Report& report)
    : centers_{images.width(), {}, {}} {
  const std::int64_t n = images.n();
  {
    Parts parts{std::vector<std::int32_t>(n), {0, n}};
    if (n > kLeaves * size)
      parts = scattered(images, size, seed, pool, report);
    else
      std::iota(parts.order.begin(), parts.order.end(), 0);
    Splitter splitter(images, std::move(parts), size, size / 4, seed, pool);
    indptr_ = splitter.split(report);
    members_ = splitter.order();
  }
  home_.resize(n);
  pool.run(count(), [&](std::int64_t cell, int) {
    const auto own = std::span(members_).subspan(indptr_[cell], indptr_[cell + 1] - indptr_[cell]);
    std::sort(own.begin(), own.end());
    for (const std::int32_t p : own) home_[p] = static_cast<std::int32_t>(cell);
  });
  thorough_ = thorough || count() <= kFew;
  bool lost = thorough_;  // until few are astray, and so remain
  for (int round = 0; round < (lost ? kMoreRounds : kRounds) && count() > 1; ++round) {
    find_centers(images, true, pool, report);
    find_near(kClose, pool, report);
    lost = lost && astray(images, pool) > kMany;
    settle(closest_cells(images, lost, pool, report), most_of(size), least);
  }
  // What is asked for in the end under a dot product are cells of large products, not of close points.
  find_centers(images, !by_product, pool, report);
  find_near(kNear, pool, report);
}

Partition::Partition(const Images& images, std::vector<std::int32_t> homes, bool by_product, ThreadPool& pool,
                     const Report& report)
    : members_(homes.size()), home_(std::move(homes)), centers_{images.width(), {}, {}} {
  indptr_.assign(*std::max_element(home_.begin(), home_.end()) + 2, 0);
  for (const std::int32_t cell : home_) ++indptr_[cell + 1];
  std::partial_sum(indptr_.begin(), indptr_.end(), indptr_.begin());
  std::vector<std::int64_t> place(indptr_.begin(), indptr_.end() - 1);
  for (std::size_t p = 0; p < home_.size(); ++p) members_[place[home_[p]]++] = static_cast<std::int32_t>(p);
  find_centers(images, !by_product, pool, report);
  find_near(kNear, pool, report);
}

void Partition::find_centers(const Images& images, bool squares, ThreadPool& pool, const Report& report) {
  const std::int64_t width = images.width();
  centers_.rows.resize(count() * width);
  centers_.offsets.assign(count(), 0.0f);
  pool.run(
      count(),
      [&](std::int64_t cell, int) {
        thread_local std::vector<float> rows;
        images.gather(members(cell), rows);
        const std::int64_t m = static_cast<std::int64_t>(members(cell).size());
        float* center = centers_.rows.data() + cell * width;
        std::vector<float> far(m, 0.0f);
        float most = 0;
        for (int pass = 0;; ++pass) {
          std::fill_n(center, width, 0.0f);
          std::int64_t taken = 0;
          for (std::int64_t i = 0; i < m; ++i) {
            if (far[i] > most) continue;
            ++taken;
            for (std::int64_t j = 0; j < width; ++j) center[j] += rows[i * width + j];
          }
          for (std::int64_t j = 0; j < width; ++j) center[j] /= static_cast<float>(taken);
          if (pass == kPasses) break;
          for (std::int64_t i = 0; i < m; ++i)
            far[i] = quick_squared_distance(rows.data() + i * width, center, width);
          most = kFar * middle(far);
          if (*std::max_element(far.begin(), far.end()) <= most) break;
        }
        if (squares) centers_.offsets[cell] = half_square(center, width);
      },
      report);
}

void Partition::find_near(std::int64_t reach, ThreadPool& pool, const Report& report) {
  reach_ = std::min(count(), reach);
  near_ = close_centers(centers_, reach_, pool, report);
}

// The share of a sample of the places whose closest cell is not among those around their own.
double Partition::astray(const Images& images, ThreadPool& pool) const {
  const std::int64_t m = std::min(kTried, images.n());
  std::vector<std::int32_t> sample(m), found(images.n());
  for (std::int64_t s = 0; s < m; ++s) sample[s] = static_cast<std::int32_t>(s * images.n() / m);
  find_closest(images, sample, centers_, count(), pool, {}, found);
  const std::int64_t lost = std::count_if(sample.begin(), sample.end(), [&](std::int32_t p) {
    const auto around = near(home(p));
    return std::find(around.begin(), around.end(), found[p]) == around.end();
  });
  return static_cast<double>(lost) / static_cast<double>(m);
}

// The closest cell to every place: one of those around its own, or one of all for those that are strangers
// where they are, whose own may be anywhere. If many are astray, all are taken for strangers.
std::vector<std::int32_t> Partition::closest_cells(const Images& images, bool lost, ThreadPool& pool,
                                                   const Report& report) const {
  std::vector<std::int32_t> cells(images.n(), -1), strangers;
  std::vector<Scratch> scratch(pool.size());
  const auto look_around = [&](std::int64_t cell, int worker) {
    Scratch& s = scratch[worker];
    const auto own = members(cell), around = near(cell);
    const std::int64_t m = static_cast<std::int64_t>(own.size()), width = images.width();
    Centers centers{width, {}, {}};
    for (const std::int32_t e : around) centers.add(center(e), offset(e));
    images.gather(own, s.images);
    multiply_rows(s.images.data(), m, centers.rows.data(), reach_, width, s.products);
    std::vector<float> far(m);
    for (std::int64_t i = 0; i < m; ++i) {
      float* products = s.products.data() + i * reach_;
      const std::int64_t c = closest(products, centers.offsets.data(), reach_);
      far[i] = half_square(s.images.data() + i * width, width) - products[c];
      cells[own[i]] = around[c];
    }
    const float most = kFar * middle(far);
    for (std::int64_t i = 0; i < m; ++i)
      if (far[i] > most) cells[own[i]] = -1;
  };
  if (!lost) pool.run(count(), look_around, report);
  for (std::int64_t p = 0; p < images.n(); ++p)
    if (cells[p] < 0) strangers.push_back(static_cast<std::int32_t>(p));
  if (!strangers.empty())
    find_closest(images, strangers, centers_, count() <= kAll ? count() : kProbes, pool, report, cells);
  return cells;
}

// Moves places to the cells closest to them, as far as these have room, one after the other.
void Partition::settle(std::span<const std::int32_t> closest, std::int64_t most, std::int64_t least) {
  const std::int64_t n = static_cast<std::int64_t>(home_.size()), cells = count();
  std::vector<std::int64_t> sizes(cells);
  for (std::int64_t c = 0; c < cells; ++c) sizes[c] = indptr_[c + 1] - indptr_[c];
  for (std::int64_t p = 0; p < n; ++p) {
    const std::int32_t from = home_[p], to = closest[p];
    if (to == from || sizes[to] >= most || sizes[from] <= least) continue;
    home_[p] = to;
    --sizes[from];
    ++sizes[to];
  }
  std::inclusive_scan(sizes.begin(), sizes.end(), indptr_.begin() + 1);
  std::vector<std::int64_t> place(indptr_.begin(), indptr_.end() - 1);
  for (std::int64_t p = 0; p < n; ++p) members_[place[home_[p]]++] = static_cast<std::int32_t>(p);
}

}  // namespace agglo
