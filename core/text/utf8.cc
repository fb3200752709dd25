#include "core/text/utf8.h"

namespace concertina {

std::optional<std::uint32_t> next_code(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xC2 && first < 0xE0   ? 1
                   : first >= 0xE0 && first < 0xF0 ? 2
                   : first >= 0xF0 && first < 0xF5 ? 3
                                                   : 0;
  if (more == 0 || at + static_cast<std::size_t>(more) > text.size()) return std::nullopt;
  std::uint32_t code = first & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) {
    const std::uint32_t next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xC0u) != 0x80) return std::nullopt;
    code = code << 6 | (next & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return std::nullopt;
  at += static_cast<std::size_t>(more);
  return code;
}

}  // namespace concertina
