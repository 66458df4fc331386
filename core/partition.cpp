#include "partition.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels.hpp"
#include "multiply.hpp"
#include "scatter.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows = 512;     // rows in a chunk of parallel work
constexpr std::int64_t kBranches = 64;  // parts that a node is split into, at most
constexpr std::int64_t kMany = 512;     // cells that a tree of splits may lead to
constexpr std::int64_t kSeeds = 4;      // for every cell, if there are more
constexpr std::int64_t kSample = 40;    // points for every part that its centre is found from
constexpr int kIterations = 4;          // of k-means
constexpr int kDepth = 16;              // beyond it points that will not part are cut up as they lie
constexpr int kRounds = 3;              // of moving places to closer cells
constexpr int kPasses = 2;              // in which members far from a cell's centre are left out of it
constexpr std::int64_t kClose = 24;     // cells that it looks for a closer one among

std::uint64_t scrambled(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

float half_square(const float* x, std::int64_t d) {
  float sum = 0;
  for (std::int64_t j = 0; j < d; ++j) sum += x[j] * x[j];
  return sum / 2;
}

// Centres and, for each, half its squared length: the closest centre has the largest product less that.
struct Centers {
  std::vector<float> rows, offsets;

  std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()); }
  int closest(const float* products) const {
    int best = 0;
    float most = -std::numeric_limits<float>::infinity();
    for (int c = 0; c < static_cast<int>(offsets.size()); ++c) {
      const float closeness = products[c] - offsets[c];
      if (closeness > most) {
        most = closeness;
        best = c;
      }
    }
    return best;
  }
};

struct Node {
  std::int64_t begin, end;  // in the order
  Centers centers;
  std::vector<std::uint8_t> merged;  // the part that a part is put into
  std::vector<std::int64_t> sizes;   // of the parts

  std::int64_t size() const { return end - begin; }
};

struct Scratch {
  std::vector<float> images, columns, products, sums;
};

class Splitter {
 public:
  Splitter(const Images& images, Parts parts, std::int64_t size, std::int64_t least, std::uint64_t seed,
           Gemm<float>* sgemm, Team& team)
      : images_(images),
        size_(size),
        least_(least),
        seed_(seed),
        sgemm_(sgemm),
        team_(team),
        scratch_(team.size()),
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
        nodes.push_back({bounds_[i], bounds_[i + 1], {}, {}, {}});
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
    team_.run(
        static_cast<std::int64_t>(nodes.size()),
        [&](std::int64_t i, int worker) { train(nodes[i], scratch_[worker]); }, report);
    team_.run(
        static_cast<std::int64_t>(chunks.size()),
        [&](std::int64_t i, int worker) {
          const Chunk& chunk = chunks[i];
          const Centers& centers = nodes[chunk.node].centers;
          Scratch& s = scratch_[worker];
          images_.gather(places(chunk.begin, chunk.end), s.images);
          multiply(sgemm_, s.images.data(), chunk.end - chunk.begin, centers.rows.data(), centers.count(),
                   images_.width(), s.products);
          for (std::int64_t b = chunk.begin; b < chunk.end; ++b)
            part_[b] = static_cast<std::uint8_t>(
                centers.closest(s.products.data() + (b - chunk.begin) * centers.count()));
        },
        report);
  }

  // Light k-means on a sample that is spread evenly over the node.
  void train(Node& node, Scratch& s) const {
    const std::int64_t d = images_.width(), wanted = (node.size() + size_ - 1) / size_;
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
    Centers& centers = node.centers;
    centers.rows.resize(branches * d);
    centers.offsets.resize(branches);
    for (std::int64_t c = 0; c < branches; ++c) {
      const std::int64_t i = (2 * c + 1) * m / (2 * branches);
      std::copy_n(s.images.data() + i * d, d, centers.rows.data() + c * d);
      centers.offsets[c] = half_square(centers.rows.data() + c * d, d);
    }
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      multiply(sgemm_, s.images.data(), m, centers.rows.data(), branches, d, s.products);
      s.sums.assign(branches * d, 0.0f);
      std::vector<std::int64_t> counts(branches, 0);
      for (std::int64_t i = 0; i < m; ++i) {
        const int c = centers.closest(s.products.data() + i * branches);
        ++counts[c];
        for (std::int64_t j = 0; j < d; ++j) s.sums[c * d + j] += s.images[i * d + j];
      }
      for (std::int64_t c = 0; c < branches; ++c) {
        if (counts[c] == 0) continue;
        for (std::int64_t j = 0; j < d; ++j)
          centers.rows[c * d + j] = s.sums[c * d + j] / static_cast<float>(counts[c]);
        centers.offsets[c] = half_square(centers.rows.data() + c * d, d);
      }
    }
  }

  // Groups every node's places by part. Parts that are still too large are returned.
  std::vector<Node> parts(std::vector<Node>& nodes) {
    std::vector<std::int32_t> grouped(order_.size());
    team_.run(static_cast<std::int64_t>(nodes.size()), [&](std::int64_t i, int worker) {
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
          left.push_back({begin, begin + size, {}, {}, {}});
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
    multiply(sgemm_, node.centers.rows.data(), count, node.centers.rows.data(), count, images_.width(),
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
  Gemm<float>* const sgemm_;
  Team& team_;
  std::vector<Scratch> scratch_;
  std::vector<std::int32_t> order_;
  std::vector<std::uint8_t> part_;
  const std::vector<std::int64_t> bounds_;  // of the parts that it begins with
  std::vector<std::int64_t> begins_;
};

// The `width` largest of scores, by (score, smaller index), largest first.
void largest(const std::vector<float>& scores, std::int64_t width, std::vector<std::int32_t>& out) {
  out.resize(scores.size());
  std::iota(out.begin(), out.end(), 0);
  const auto better = [&](std::int32_t a, std::int32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  std::nth_element(out.begin(), out.begin() + (width - 1), out.end(), better);
  std::sort(out.begin(), out.begin() + width, better);
}

}  // namespace

Partition::Partition(const Images& images, std::int64_t size, std::int64_t least, bool by_product,
                     std::uint64_t seed, Gemm<float>* sgemm, Team& team, const Report& report)
    : width_(images.width()) {
  const std::int64_t n = images.n();
  {
    const std::int64_t small = std::max(least, size / 4);
    Parts parts{std::vector<std::int32_t>(n), {0, n}};
    if (n > kMany * size)
      parts = scattered(images, kSeeds * n / size, small, seed, sgemm, team, report);
    else
      std::iota(parts.order.begin(), parts.order.end(), 0);
    Splitter splitter(images, std::move(parts), size, small, seed, sgemm, team);
    indptr_ = splitter.split(report);
    members_ = splitter.order();
  }
  home_.resize(n);
  team.run(count(), [&](std::int64_t cell, int) {
    const auto own = std::span(members_).subspan(indptr_[cell], indptr_[cell + 1] - indptr_[cell]);
    std::sort(own.begin(), own.end());
    for (const std::int32_t p : own) home_[p] = static_cast<std::int32_t>(cell);
  });
  std::vector<std::int32_t> closest(n);
  std::vector<Scratch> scratch(team.size());
  for (int round = 0; round < kRounds && count() > 1; ++round) {
    find_centers(images, true, team, report);
    find_near(kClose, sgemm, team, report);
    team.run(
        count(),
        [&](std::int64_t cell, int worker) {
          Scratch& s = scratch[worker];
          const auto own = members(cell), around = near(cell);
          const std::int64_t m = static_cast<std::int64_t>(own.size());
          Centers centers;
          for (const std::int32_t e : around) {
            centers.rows.insert(centers.rows.end(), center(e), center(e) + width_);
            centers.offsets.push_back(offset(e));
          }
          images.gather(own, s.images);
          multiply(sgemm, s.images.data(), m, centers.rows.data(), reach_, width_, s.products);
          for (std::int64_t i = 0; i < m; ++i)
            closest[own[i]] = around[centers.closest(s.products.data() + i * reach_)];
        },
        report);
    settle(closest, most_of(size), least);
  }
  // What is asked for in the end under a dot product are cells of large products, not of close points.
  find_centers(images, !by_product, team, report);
  find_near(kNear, sgemm, team, report);
}

void Partition::find_centers(const Images& images, bool squares, Team& team, const Report& report) {
  centers_.resize(count() * width_);
  offsets_.assign(count(), 0.0f);
  team.run(
      count(),
      [&](std::int64_t cell, int) {
        thread_local std::vector<float> rows;
        images.gather(members(cell), rows);
        const std::int64_t m = static_cast<std::int64_t>(members(cell).size());
        float* center = centers_.data() + cell * width_;
        std::vector<float> far(m, 0.0f), order;
        float most = 0;
        for (int pass = 0;; ++pass) {
          std::fill_n(center, width_, 0.0f);
          std::int64_t taken = 0;
          for (std::int64_t i = 0; i < m; ++i) {
            if (far[i] > most) continue;
            ++taken;
            for (std::int64_t j = 0; j < width_; ++j) center[j] += rows[i * width_ + j];
          }
          for (std::int64_t j = 0; j < width_; ++j) center[j] /= static_cast<float>(taken);
          if (pass == kPasses) break;
          for (std::int64_t i = 0; i < m; ++i)
            far[i] = quick_squared_distance(rows.data() + i * width_, center, width_);
          order = far;
          std::nth_element(order.begin(), order.begin() + m / 2, order.end());
          most = 2 * order[m / 2];
          if (*std::max_element(far.begin(), far.end()) <= most) break;
        }
        if (squares) offsets_[cell] = half_square(center, width_);
      },
      report);
}

void Partition::find_near(std::int64_t reach, Gemm<float>* sgemm, Team& team, const Report& report) {
  constexpr std::int64_t block = 32;
  reach_ = std::min(count(), reach);
  near_.resize(count() * reach_);
  team.ranges(
      count(), block,
      [&](std::int64_t first, std::int64_t last, int) {
        thread_local std::vector<float> products;
        std::vector<float> scores(count());
        std::vector<std::int32_t> best;
        multiply(sgemm, center(first), last - first, centers_.data(), count(), width_, products);
        for (std::int64_t c = first; c < last; ++c) {
          for (std::int64_t e = 0; e < count(); ++e)
            scores[e] = products[(c - first) * count() + e] - offsets_[e];
          scores[c] = std::numeric_limits<float>::infinity();  // whatever rounding says
          largest(scores, reach_, best);
          std::copy_n(best.begin(), reach_, near_.begin() + c * reach_);
        }
      },
      report);
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
