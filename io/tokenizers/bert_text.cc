#include "io/tokenizers/bert_text.h"

#include <utf8proc.h>

#include <array>

#include "core/error.h"
#include "core/utf8.h"
#include "io/tokenizers/unicode.h"

namespace concertina {
namespace {

utf8proc_category_t category_of(std::uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_control(std::uint32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
      return true;
    default:
      return false;
  }
}

bool is_ideograph(std::uint32_t code) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kRanges[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const auto& [first, last] : kRanges)
    if (code >= first && code <= last) return true;
  return false;
}

bool is_punctuation(std::uint32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
           (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
  const utf8proc_category_t category = category_of(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

/// Calls `use` with each character of UTF-8 text.
template <class Use>
void for_each_code(std::string_view text, const Use& use) {
  for (std::size_t at = 0; at < text.size();) use(next_code(text, at).value_or(0xFFFD));
}

std::string cleaned(std::string_view text) {
  std::string result;
  for_each_code(text, [&](std::uint32_t code) {
    if (code == 0 || code == 0xFFFD || is_control(code)) return;
    append_utf8(is_white_space(code) ? ' ' : code, result);
  });
  return result;
}

std::string spaced_ideographs(std::string_view text) {
  std::string result;
  for_each_code(text, [&](std::uint32_t code) {
    if (is_ideograph(code)) result += ' ';
    append_utf8(code, result);
    if (is_ideograph(code)) result += ' ';
  });
  return result;
}

/// Canonical decomposition (NFD), without non-spacing marks.
std::string without_accents(const std::string& text) {
  utf8proc_uint8_t* decomposed = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &decomposed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE));
  CONCERTINA_CHECK(size >= 0, "{}", utf8proc_errmsg(size));
  std::string result;
  for_each_code({reinterpret_cast<const char*>(decomposed), static_cast<std::size_t>(size)},
                [&](std::uint32_t code) {
                  if (category_of(code) != UTF8PROC_CATEGORY_MN) append_utf8(code, result);
                });
  std::free(decomposed);
  return result;
}

std::string lowered(std::string_view text) {
  std::string result;
  for_each_code(text, [&](std::uint32_t code) {
    if (code == 0x130)
      result += "i\u0307";  // the one character whose small form is two
    else
      append_utf8(static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))),
                  result);
  });
  return result;
}

}  // namespace

std::string BertText::normalize(std::string_view text) const {
  std::string result = clean ? cleaned(text) : std::string(text);
  if (chinese) result = spaced_ideographs(result);
  if (strip_accents) result = without_accents(result);
  if (lowercase) result = lowered(result);
  return result;
}

std::vector<std::string_view> BertText::words(std::string_view normalized) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;  // of the word that is open
  const auto end_word = [&](std::size_t end) {
    if (end > begin) words.push_back(normalized.substr(begin, end - begin));
  };
  for (std::size_t at = 0; at < normalized.size();) {
    const std::size_t here = at;
    const std::uint32_t code = next_code(normalized, at).value_or(0xFFFD);
    const bool mark = is_punctuation(code);
    if (!mark && !is_white_space(code)) continue;
    end_word(here);
    if (mark) words.push_back(normalized.substr(here, at - here));
    begin = at;
  }
  end_word(normalized.size());
  return words;
}

}  // namespace concertina
