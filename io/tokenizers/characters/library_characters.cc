#include "io/tokenizers/characters/library_characters.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/text/utf8.h"

namespace concertina {
namespace {

struct CodeRange {
  std::uint32_t first, last;  // in kNewLower: a letter and its lower case
};
struct NewCharacters {
  std::uint32_t first, last;
  std::string_view category;
};

#include "io/tokenizers/characters/library_characters.inc"

bool is_in(std::span<const CodeRange> ranges, std::uint32_t code) {
  const auto after = std::ranges::upper_bound(ranges, code, {}, &CodeRange::first);
  return after != ranges.begin() && code <= std::prev(after)->last;
}

/// Appends utf8proc's normal form of a text without opaque characters.
void append_normal(std::string_view text, int options, std::string& result) {
  if (text.empty()) return;
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  CONCERTINA_CHECK(size >= 0, "{}", utf8proc_errmsg(size));
  result.append(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
  std::free(made);
}

bool is_ascii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

}  // namespace

bool is_library_control(std::uint32_t code) {
  return is_in(kControls, code);
}
bool is_library_non_spacing(std::uint32_t code) {
  return is_in(kNonSpacing, code);
}
bool is_library_combining(std::uint32_t code) {
  return is_in(kCombining, code);
}
bool is_library_punctuation(std::uint32_t code) {
  return is_in(kPunctuation, code);
}
bool is_library_numeric(std::uint32_t code) {
  return is_in(kNumeric, code);
}

std::string text_without(std::string_view text, bool (*leaves_out)(std::uint32_t code)) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    if (!leaves_out(next_code(text, at).value_or(0xFFFD))) result.append(text, here, at - here);
  }
  return result;
}

std::string library_lower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t code = next_code(text, at).value_or(0xFFFD);
    if (code < 0x80) {
      result += static_cast<char>(code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code);
    } else if (code == 0x130) {
      result += "i\u0307";  // the only character whose lower case has two characters
    } else {
      const auto* const known = std::ranges::find(kNewLower, code, &CodeRange::first);
      append_utf8(
          known != std::end(kNewLower)
              ? known->last
              : static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))),
          result);
    }
  }
  return result;
}

std::string library_normal_form(std::string_view text, std::string_view form) {
  if (is_ascii(text)) return std::string(text);
  const int options = (form.ends_with('C') ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (form.starts_with("NFK") ? UTF8PROC_COMPAT : 0);
  std::string result;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    if (!is_in(kOpaque, next_code(text, at).value_or(0xFFFD))) continue;
    append_normal(text.substr(begin, here - begin), options, result);
    result.append(text, here, at - here);
    begin = at;
  }
  append_normal(text.substr(begin), options, result);
  return result;
}

bool has_newer_characters(std::string_view text) {
  // Indexed by code point without the lowest 8 bits. The first is U+0897, of three bytes in UTF-8.
  static const std::vector<bool> pages = [] {
    std::vector<bool> all(0x1100);
    for (const NewCharacters& newer : kNewer)
      for (std::uint32_t page = newer.first >> 8; page <= newer.last >> 8; ++page) all[page] = true;
    return all;
  }();
  const auto is_long = [](char c) { return static_cast<unsigned char>(c) >= 0xE0; };
  for (auto at = std::ranges::find_if(text, is_long); at != text.end();
       at = std::find_if(at + 1, text.end(), is_long)) {
    std::size_t begin = static_cast<std::size_t>(at - text.begin());
    const std::uint32_t code = next_code(text, begin).value_or(0);
    if (!pages[code >> 8]) continue;
    const auto* const after = std::ranges::upper_bound(kNewer, code, {}, &NewCharacters::first);
    if (after != std::begin(kNewer) && code <= std::prev(after)->last) return true;
  }
  return false;
}

std::string newer_characters(std::string_view category) {
  std::string items;
  for (const NewCharacters& newer : kNewer)
    if (newer.category.starts_with(category))
      items += fmt::format(R"(\x{{{:X}}}-\x{{{:X}}})", newer.first, newer.last);
  return items;
}

}  // namespace concertina
