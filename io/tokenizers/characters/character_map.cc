#include "io/tokenizers/characters/character_map.h"

#include <utf8proc.h>

#include "core/error.h"
#include "core/text/utf8.h"

namespace concertina {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const std::size_t digit = kBase64.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

std::uint32_t little_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Fields of a unit of the double array.
std::size_t offset_of(std::uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10) << ((unit & 0x200U) >> 6);
}
std::uint32_t label_of(std::uint32_t unit) {
  return unit & 0x800000FFU;
}
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8 & 1U) != 0;
}

}  // namespace

CharacterMap::CharacterMap(std::string_view encoded, const std::string& where) {
  const std::optional<std::string> bytes = from_base64(encoded);
  const std::size_t size = bytes && bytes->size() >= 4 ? little_u32(*bytes, 0) : 0;
  if (size == 0 || size % 4 != 0 || size > bytes->size() - 4)
    throw_input("precompiled_charsmap is not a SentencePiece table", where,
                "use a complete tokenizer.json");
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(little_u32(*bytes, at));
  strings_ = bytes->substr(4 + size);
}

/// Returns the replacement for the shortest prefix of `text` that is in the table.
std::optional<std::string_view> CharacterMap::find(std::string_view text) const {
  std::size_t node = offset_of(units_[0]);
  for (const char byte : text) {
    const std::uint32_t label = static_cast<unsigned char>(byte);
    if (label == 0) break;
    node ^= label;
    if (node >= units_.size() || label_of(units_[node]) != label) break;
    const bool leaf = has_leaf(units_[node]);
    node ^= offset_of(units_[node]);
    if (!leaf) continue;
    const std::size_t begin = node < units_.size() ? units_[node] & 0x7FFFFFFFU : strings_.size();
    if (begin >= strings_.size()) break;
    return std::string_view(strings_).substr(begin, strings_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

bool CharacterMap::append(std::string_view part, std::string& result) const {
  const auto found = find(part);
  if (found) result += *found;
  return found.has_value();
}

std::string CharacterMap::apply(std::string_view text) const {
  constexpr std::size_t kShort = 6;
  std::string result;
  result.reserve(text.size());
  utf8proc_int32_t state = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;  // of the grapheme
    std::uint32_t code = next_code(text, end).value_or(0xFFFD);
    for (std::size_t next = end; next < text.size(); end = next) {
      const std::uint32_t following = next_code(text, next).value_or(0xFFFD);
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(code),
                                           static_cast<utf8proc_int32_t>(following), &state))
        break;
      code = following;
    }
    const std::string_view grapheme = text.substr(begin, end - begin);
    begin = end;
    if (grapheme.size() < kShort && append(grapheme, result)) continue;
    for (std::size_t at = 0; at < grapheme.size();) {
      const std::size_t here = at;
      next_code(grapheme, at);
      const std::string_view character = grapheme.substr(here, at - here);
      if (!append(character, result)) result += character;
    }
  }
  return result;
}

}  // namespace concertina
