// A first partition of very many points: each with the closest of a random choice of them.
#pragma once

#include <cstdint>
#include <vector>

#include "images.hpp"
#include "neighbors.hpp"
#include "parallel.hpp"

namespace agglo {

// The places 0..n-1, those of one part after the other, and where each part begins, with n at the end.
struct Parts {
  std::vector<std::int32_t> order;
  std::vector<std::int64_t> begins;
};

// Parts around `seeds` random places, none smaller than `least` (unless there is only one).
//
// A tree of splits cannot tell many clusters apart: its first centres are means of many clusters, hardly
// different from each other, and the points of a cluster fall on either side. A seed is as close to its own
// cluster as any point of it. What is looked at are not all seeds but, in groups of them, the closest few.
Parts scattered(const Images& images, std::int64_t seeds, std::int64_t least, std::uint64_t seed,
                Gemm<float>* sgemm, Team& team, const Report& report);

}  // namespace agglo
