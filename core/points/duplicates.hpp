// Rows that are equal to each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"

namespace agglo {

// For each row the first one that is equal to it: itself, if none before it is. Row i has the numbers
// numbers[indptr[i]..indptr[i + 1]], given by their bits: unsigned integers of the same length. Of floating
// numbers zeros are equal whatever their sign.
template <class Word>
std::vector<std::int32_t> first_equal(std::span<const std::int64_t> indptr, std::span<const Word> numbers,
                                      bool floating, ThreadPool& pool);

}  // namespace agglo
