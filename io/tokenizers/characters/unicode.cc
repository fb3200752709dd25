#include "io/tokenizers/characters/unicode.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/utf8.h"

namespace concertina {
namespace {

/// Returns the character that ends at `at`.
std::uint32_t code_before(std::string_view text, std::size_t at) {
  std::size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    --begin;
  return next_code(text, begin).value_or(' ');
}

bool is_cut(std::string_view text, std::size_t at) {
  if (at < 2 || text[at - 1] != '\n' || is_white_space(code_before(text, at - 1))) return false;
  std::size_t next = at;
  return text[at] != '/' && !is_white_space(next_code(text, next).value_or(' '));
}

/// Returns the first byte that is not UTF-8, or the end.
std::size_t end_of_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (!next_code(text, at)) return begin;
  }
  return text.size();
}

}  // namespace

bool is_utf8(std::string_view text) {
  return end_of_utf8(text) == text.size();
}

std::size_t white_space_after(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t next = at;
    if (!is_white_space(next_code(text, next).value_or(0))) break;
    at = next;
  }
  return at;
}

std::size_t white_space_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    std::size_t begin = at - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (white_space_after(text.substr(0, at), begin) != at) break;
    at = begin;
  }
  return at;
}

void require_utf8(std::string_view text) {
  const std::size_t begin = end_of_utf8(text);
  if (begin < text.size())
    throw_input(fmt::format("invalid UTF-8 at byte {}", begin), "the text",
                "use text in UTF-8, or data.tokenizer = \"bytes\"");
}

std::size_t line_cut(std::string_view text, std::size_t from) {
  for (std::size_t at = std::max<std::size_t>(from, 1); at < text.size(); ++at) {
    const std::size_t line = text.find('\n', at - 1);
    if (line == std::string_view::npos || line + 1 >= text.size()) break;
    at = line + 1;
    if (is_cut(text, at)) return at;
  }
  return text.size();
}

std::size_t space_cut(std::string_view text, std::size_t from) {
  const auto prints = [&](std::size_t at) { return text[at] > ' ' && text[at] < '\x7f'; };
  for (std::size_t at = text.find(' ', std::max<std::size_t>(from, 1)); at < text.size();
       at = text.find(' ', at + 1))
    if (at + 1 < text.size() && prints(at - 1) && prints(at + 1)) return at;
  return text.size();
}

}  // namespace concertina
