// The hash that tests/golden/make_tokenizers.py gives tokens and texts.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace concertina {

/// FNV-1a, 64 bits, as hexadecimal digits.
inline std::string hash_of(std::span<const std::byte> bytes) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const std::byte byte : bytes)
    value = (value ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3;
  return fmt::format("{:016x}", value);
}

}  // namespace concertina
