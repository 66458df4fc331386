#include "scatter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include "kernels.hpp"
#include "multiply.hpp"

namespace agglo {
namespace {

constexpr std::int64_t kRows =
    4096;  // places in a chunk of work: so many that each group is asked by a block
constexpr std::int64_t kProbes = 12;  // groups that are looked into
constexpr int kIterations = 3;        // of k-means, of the groups

// Rows with half their squared lengths: the closest has the largest product less that.
struct Centers {
  std::vector<float> rows, offsets;

  std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()); }
  void add(const float* row, std::int64_t width) {
    rows.insert(rows.end(), row, row + width);
    offsets.push_back(std::inner_product(row, row + width, row, 0.0f) / 2);
  }
};

// The closest centre by its products, the first of equals; these become closenesses. In lanes, so that it
// takes wide registers.
std::int64_t closest_of(float* products, const Centers& centers) {
  constexpr std::int64_t lanes = 16;
  const std::int64_t n = centers.count();
  const float* offsets = centers.offsets.data();
  float most[lanes];
  std::fill_n(most, lanes, -std::numeric_limits<float>::infinity());
  std::int64_t c = 0;
  for (; c + lanes <= n; c += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) {
      products[c + l] -= offsets[c + l];
      most[l] = most[l] < products[c + l] ? products[c + l] : most[l];
    }
  for (; c < n; ++c) {
    products[c] -= offsets[c];
    most[0] = std::max(most[0], products[c]);
  }
  return std::find(products, products + n, *std::max_element(most, most + lanes)) - products;
}

// Centres in about as many groups as a group has members.
class Groups {
 public:
  Groups(const Centers& centers, std::int64_t width, Gemm<float>* sgemm) : width_(width), sgemm_(sgemm) {
    const std::int64_t n = centers.count(),
                       count = std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(n))));
    for (std::int64_t g = 0; g < count; ++g)
      leaders_.add(centers.rows.data() + (2 * g + 1) * n / (2 * count) * width, width);
    std::vector<std::int64_t> group(n);
    std::vector<float> products;
    for (int iteration = 0; iteration <= kIterations; ++iteration) {
      constexpr std::int64_t block = 1024;
      for (std::int64_t first = 0; first < n; first += block) {
        const std::int64_t rows = std::min(block, n - first);
        multiply(sgemm, centers.rows.data() + first * width, rows, leaders_.rows.data(), count, width,
                 products);
        for (std::int64_t i = 0; i < rows; ++i)
          group[first + i] = closest_of(products.data() + i * count, leaders_);
      }
      if (iteration == kIterations) break;
      std::vector<float> sums(count * width, 0.0f);
      std::vector<std::int64_t> sizes(count, 0);
      for (std::int64_t c = 0; c < n; ++c) {
        ++sizes[group[c]];
        for (std::int64_t j = 0; j < width; ++j) sums[group[c] * width + j] += centers.rows[c * width + j];
      }
      Centers means;
      for (std::int64_t g = 0; g < count; ++g) {
        float* sum = sums.data() + g * width;
        if (sizes[g] == 0) std::copy_n(leaders_.rows.data() + g * width, width, sum);
        for (std::int64_t j = 0; j < width; ++j)
          sum[j] /= static_cast<float>(std::max<std::int64_t>(sizes[g], 1));
        means.add(sum, width);
      }
      leaders_ = std::move(means);
    }
    members_.resize(count);
    ids_.resize(count);
    for (std::int64_t c = 0; c < n; ++c) {
      members_[group[c]].add(centers.rows.data() + c * width, width);
      ids_[group[c]].push_back(static_cast<std::int32_t>(c));
    }
  }

  struct Scratch {
    std::vector<float> rows, asking, products, best;
    std::vector<std::vector<std::int32_t>> asked;  // rows that look into each group
    std::vector<std::int32_t> order;
  };

  // The closest centre to each of some rows, as far as it is in one of the groups closest to it.
  void closest(const std::vector<float>& rows, std::int64_t n, Scratch& s, std::int32_t* out) const {
    const std::int64_t count = leaders_.count(), probes = std::min(kProbes, count);
    s.asked.assign(count, {});
    s.best.assign(n, -std::numeric_limits<float>::infinity());
    multiply(sgemm_, rows.data(), n, leaders_.rows.data(), count, width_, s.products);
    for (std::int64_t i = 0; i < n; ++i) {
      float* scores = s.products.data() + i * count;
      for (std::int64_t g = 0; g < count; ++g) scores[g] -= leaders_.offsets[g];
      s.order.resize(count);
      std::iota(s.order.begin(), s.order.end(), 0);
      std::nth_element(s.order.begin(), s.order.begin() + (probes - 1), s.order.end(),
                       [&](std::int32_t a, std::int32_t b) {
                         return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                       });
      for (std::int64_t r = 0; r < probes; ++r) s.asked[s.order[r]].push_back(static_cast<std::int32_t>(i));
    }
    for (std::int64_t g = 0; g < count; ++g) {
      const Centers& members = members_[g];
      const std::int64_t asking = static_cast<std::int64_t>(s.asked[g].size());
      if (asking == 0 || members.count() == 0) continue;
      s.asking.resize(asking * width_);
      for (std::int64_t a = 0; a < asking; ++a)
        std::copy_n(rows.data() + s.asked[g][a] * width_, width_, s.asking.data() + a * width_);
      multiply(sgemm_, s.asking.data(), asking, members.rows.data(), members.count(), width_, s.products);
      for (std::int64_t a = 0; a < asking; ++a) {
        float* closeness = s.products.data() + a * members.count();
        const std::int64_t c = closest_of(closeness, members);
        const std::int32_t i = s.asked[g][a];
        if (closeness[c] > s.best[i]) {
          s.best[i] = closeness[c];
          out[i] = ids_[g][c];
        }
      }
    }
  }

 private:
  const std::int64_t width_;
  Gemm<float>* const sgemm_;
  Centers leaders_;
  std::vector<Centers> members_;
  std::vector<std::vector<std::int32_t>> ids_;
};

}  // namespace

Parts scattered(const Images& images, std::int64_t seeds, std::int64_t least, std::uint64_t seed,
                Gemm<float>* sgemm, Team& team, const Report& report) {
  const std::int64_t n = images.n(), width = images.width();
  std::vector<std::int32_t> chosen(seeds);
  std::mt19937_64 chance(seed);
  for (std::int64_t s = 0; s < seeds; ++s) {
    const std::uint64_t first = s * n / seeds, last = (s + 1) * n / seeds;
    chosen[s] = static_cast<std::int32_t>(first + chance() % (last - first));
  }
  Centers centers;
  {
    std::vector<float> rows;
    images.gather(chosen, rows);
    for (std::int64_t s = 0; s < seeds; ++s) centers.add(rows.data() + s * width, width);
  }
  std::vector<std::int32_t> part(n), places(n);
  std::iota(places.begin(), places.end(), 0);
  std::vector<Groups::Scratch> scratch(team.size());
  const auto assign = [&] {
    const Groups groups(centers, width, sgemm);
    team.ranges(
        static_cast<std::int64_t>(places.size()), kRows,
        [&](std::int64_t first, std::int64_t last, int worker) {
          Groups::Scratch& s = scratch[worker];
          std::vector<std::int32_t> found(last - first, 0);
          const auto some = std::span(places).subspan(first, last - first);
          images.gather(some, s.rows);
          groups.closest(s.rows, last - first, s, found.data());
          for (std::int64_t i = first; i < last; ++i) part[places[i]] = found[i - first];
        },
        report);
  };
  assign();
  // The members of small parts go to the closest of the others.
  std::vector<std::int64_t> sizes(seeds, 0);
  for (std::int64_t p = 0; p < n; ++p) ++sizes[part[p]];
  if (*std::max_element(sizes.begin(), sizes.end()) >= least) {
    Centers left;
    std::vector<std::int32_t> renamed(seeds, -1);
    for (std::int64_t s = 0; s < seeds; ++s) {
      if (sizes[s] < least) continue;
      renamed[s] = static_cast<std::int32_t>(left.count());
      left.add(centers.rows.data() + s * width, width);
    }
    places.clear();
    for (std::int64_t p = 0; p < n; ++p)
      if ((part[p] = renamed[part[p]]) < 0) places.push_back(static_cast<std::int32_t>(p));
    centers = std::move(left);
    assign();
  } else {
    centers.offsets.resize(1);
    std::fill(part.begin(), part.end(), 0);
  }
  Parts parts{std::vector<std::int32_t>(n), std::vector<std::int64_t>(centers.count() + 1, 0)};
  for (std::int64_t p = 0; p < n; ++p) ++parts.begins[part[p] + 1];
  std::partial_sum(parts.begins.begin(), parts.begins.end(), parts.begins.begin());
  std::vector<std::int64_t> place(parts.begins.begin(), parts.begins.end() - 1);
  for (std::int64_t p = 0; p < n; ++p) parts.order[place[part[p]]++] = static_cast<std::int32_t>(p);
  return parts;
}

}  // namespace agglo
