#include "io/datasets/content_hash.h"

#include <utf8proc.h>
#include <xxhash.h>

namespace concertina {
namespace {

bool is_ascii_space(unsigned char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Advances `at` past a non-ASCII code point and appends its lower-case form, or a space if it is
/// white space. Returns whether it is.
bool append_wide(std::string_view text, std::size_t& at, std::string& folded) {
  utf8proc_int32_t code = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (length <= 0) {
    folded += text[at++];
    return false;
  }
  at += static_cast<std::size_t>(length);
  if (code == 0x85 || utf8proc_category(code) == UTF8PROC_CATEGORY_ZS) return true;
  utf8proc_uint8_t bytes[4];
  const auto written = utf8proc_encode_char(utf8proc_tolower(code), bytes);
  folded.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(written));
  return false;
}

}  // namespace

std::uint64_t content_hash(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

void append_folded(std::string_view text, std::string& folded) {
  const std::size_t begin = folded.size();
  bool gap = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    const std::size_t before = folded.size();
    bool space = is_ascii_space(c);
    if (c >= 0x80) {
      space = append_wide(text, at, folded);
    } else {
      ++at;
      if (!space) folded += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    if (gap && !space && before > begin) folded.insert(before, 1, ' ');
    gap = space;
  }
}

std::uint64_t folded_hash(std::string_view text) {
  std::string folded;
  append_folded(text, folded);
  return content_hash(folded);
}

}  // namespace concertina
