// An order of points in which points that are close to each other are close in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// Return an order of n rows of `width` coordinates. Every run of `leaf` rows in it, and every run of `block`
// rows, is close together: the rows are halved again and again along the coordinate with the largest spread.
// `block` must be a multiple of `leaf`.
std::vector<std::int32_t> order_by_halving(std::span<const float> coordinates, std::int64_t width,
                                           std::int64_t block, std::int64_t leaf);

}  // namespace agglo
