// Ids of points and clusters.
#pragma once

#include <cstdint>

namespace agglo {

using Id = std::int32_t;  // the id of a point; the id of a cluster is the smallest id of its points
constexpr Id kNoCluster = -1;

}  // namespace agglo
