// Arrays in NumPy's format .npy, version 1.0, little-endian, in C order: a header of kNpyHeader
// bytes, then the elements.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/tensor.h"

namespace concertina {

inline constexpr std::uint64_t kNpyHeader = 256;

/// The header of an array of f32 or i32. At most 8 extents.
std::string npy_header(DType type, std::span<const std::int64_t> shape);

}  // namespace concertina
