// Centres of points, and which are the closest to what, without looking at all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"
#include "neighbors/exact.hpp"

namespace agglo {

float half_square(const float* row, std::int64_t width);

// Rows, one after the other, and half the squared length of each, or 0 where it is products that count:
// closeness is the product less that.
struct Centers {
  std::int64_t width;
  std::vector<float> rows, offsets;

  std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()); }
  const float* row(std::int64_t c) const { return rows.data() + c * width; }
  void add(const float* row, float offset) {
    rows.insert(rows.end(), row, row + width);
    offsets.push_back(offset);
  }
};

// The largest of n products less the offsets, the first of equals; the products become closenesses.
std::int64_t closest(float* products, const float* offsets, std::int64_t n);

// Means of n rows by a few rounds of k-means, which begin with rows that are spread evenly.
Centers light_means(const float* rows, std::int64_t n, std::int64_t width, std::int64_t count);

// Centres in groups of close ones. A row looks for those closest to it in the groups closest to it: some are
// missed, but few are looked at. It is the same for any number of threads.
class Groups {
 public:
  Groups(const Centers& centers, std::int64_t groups, std::int64_t probes, ThreadPool& pool);

  struct Scratch {
    std::vector<float> rows, products, best;
    std::vector<std::int32_t> found;
    std::vector<std::vector<std::int32_t>> asking;  // the rows that look into each group
    std::vector<std::vector<float>> closenesses;    // of what each row has seen,
    std::vector<std::vector<std::int32_t>> seen;    // and what it was
  };

  // The closest centre of each of n rows.
  void one(const float* rows, std::int64_t n, Scratch& s, std::int32_t* out) const;
  // The `reach` closest centres of each of n rows, the closest first.
  void several(const float* rows, std::int64_t n, std::int64_t reach, Scratch& s, std::int32_t* out) const;

 private:
  template <class Take>
  void look(const float* rows, std::int64_t n, std::int64_t least, Scratch& s, const Take& take) const;

  const std::int64_t probes_;
  Centers leaders_, members_;         // of the groups; all centres, group by group
  std::vector<std::int32_t> ids_;     // of the members
  std::vector<std::int64_t> begins_;  // of the groups, in members
};

// For every centre the `reach` centres closest to it, itself first.
std::vector<std::int32_t> close_centers(const Centers& centers, std::int64_t reach, ThreadPool& pool,
                                        const Report& report);

}  // namespace agglo
