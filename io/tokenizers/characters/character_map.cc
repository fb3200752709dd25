#include "io/tokenizers/characters/character_map.h"

#include <openssl/evp.h>
#include <utf8proc.h>

#include <cstring>
#include <iterator>

#include "core/error.h"
#include "core/text/utf8.h"

namespace concertina {
namespace {

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
  std::string bytes(encoded.size() / 4 * 3, '\0');
  std::uint32_t size = 0;
  if (encoded.size() >= 8 && encoded.size() % 4 == 0 &&
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(encoded.data()),
                      static_cast<int>(encoded.size())) == std::ssize(bytes))
    std::memcpy(&size, bytes.data(), sizeof size);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4)
    throw_input("precompiled_charsmap is not a SentencePiece table", where,
                "use a complete tokenizer.json");
  units_.resize(size / 4);
  std::memcpy(units_.data(), bytes.data() + 4, size);
  strings_ = bytes.substr(std::size_t{4} + size);
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
