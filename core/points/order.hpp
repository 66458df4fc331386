// Sorts points so that points that are close to each other are close in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agglo {

// Return an order of n rows with `width` coordinates, so that nearby rows are consecutive.
// The rows are halved recursively along the coordinate with the largest spread.
// The halves end at multiples of `block` and `leaf` rows. `block` must be a multiple of `leaf`.
std::vector<std::int32_t> order_by_halving(std::span<const float> coordinates, std::int64_t width,
                                           std::int64_t block, std::int64_t leaf);

}  // namespace agglo
