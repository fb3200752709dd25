#include "io/tokenizers/bert_text.h"

#include <algorithm>
#include <utility>

#include "core/text/utf8.h"
#include "io/tokenizers/characters/library_characters.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina {
namespace {

bool is_ideograph(std::uint32_t code) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kRanges[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  if (code < 0x3400) return false;
  return std::ranges::any_of(
      kRanges, [&](const auto& range) { return code >= range.first && code <= range.second; });
}

/// Removes control characters and converts white space to spaces.
std::string cleaned(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const std::uint32_t code = next_code(text, at).value_or(0xFFFD);
    if (code >= ' ' && code < 0x7F)
      result += text[here];
    else if (!is_library_control(code))
      is_white_space(code) ? result += ' ' : result.append(text, here, at - here);
  }
  return result;
}

std::string spaced_ideographs(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const bool alone = is_ideograph(next_code(text, at).value_or(0xFFFD));
    if (alone) result += ' ';
    result.append(text, here, at - here);
    if (alone) result += ' ';
  }
  return result;
}

}  // namespace

std::string BertText::normalize(std::string_view text) const {
  std::string result = clean ? cleaned(text) : std::string(text);
  const bool ascii =
      std::ranges::none_of(result, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (chinese && !ascii) result = spaced_ideographs(result);
  if (strip_accents && !ascii)
    result = text_without(library_normal_form(result, "NFD"), is_library_non_spacing);
  if (lowercase) result = library_lower(result);
  return result;
}

}  // namespace concertina
