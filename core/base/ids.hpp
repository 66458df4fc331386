// Ids of points and clusters.
#pragma once

#include <cstdint>

namespace agglo {

using Id = std::int32_t;  // a point, or the cluster whose smallest point it is
constexpr Id kNoCluster = -1;

}  // namespace agglo
