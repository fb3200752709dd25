#include "io/datasets/content_hash.h"

#include <utf8proc.h>
#include <xxhash.h>

#include "core/text/utf8.h"

namespace concertina {
namespace {

bool is_ascii_space(unsigned char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Advances `at` past a non-ASCII code point and appends its lower-case form, or a space if it is
/// white space. Returns whether it is.
bool append_wide(std::string_view text, std::size_t& at, std::string& folded) {
  const char first = text[at];
  const auto code = next_code(text, at);
  if (code && (*code == 0x85 || utf8proc_category(*code) == UTF8PROC_CATEGORY_ZS)) return true;
  if (code)
    append_utf8(utf8proc_tolower(*code), folded);
  else
    folded += first;
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
