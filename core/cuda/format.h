// The formats of what products multiply.
#pragma once

#include <cstdint>
#include <string_view>

namespace concertina::cuda {

/// tf32: stored as fp32. e4m3 and e5m2: bytes, to be multiplied by one scale a tensor
/// (Micikevicius et al. 2022, "FP8 Formats for Deep Learning").
enum class Format : std::uint8_t { f32, tf32, bf16, e4m3, e5m2 };

inline constexpr bool is_fp8(Format format) {
  return format == Format::e4m3 || format == Format::e5m2;
}
inline constexpr std::string_view name_of(Format format) {
  constexpr std::string_view kNames[] = {"fp32", "tf32", "bf16", "E4M3", "E5M2"};
  return kNames[static_cast<int>(format)];
}

}  // namespace concertina::cuda
