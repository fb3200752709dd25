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

void append_utf8(std::uint32_t code, std::string& text) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

bool is_white_space(std::uint32_t code) {
  return (code >= 9 && code <= 13) || code == 32 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

}  // namespace concertina
