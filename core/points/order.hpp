// An order of points in which neighbouring points are close to each other in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// Return the indices of all rows, in an order in which consecutive rows are close to each other.
// Each row has `width` coordinates.
// The rows are halved recursively along the coordinate with the largest spread, down to `leaf` rows.
// If a part has more than `block` rows, its first half has a multiple of `block` rows.
// Otherwise, the first half has a multiple of `leaf` rows. `block` must be a multiple of `leaf`.
std::vector<std::int32_t> order_by_halving(std::span<const float> coordinates, std::int64_t width,
                                           std::int64_t block, std::int64_t leaf);

}  // namespace agglo
