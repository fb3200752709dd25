#include "io/tokenizer.h"

#include <fmt/format.h>

#include "core/error.h"

namespace concertina {

void require_tokenizer(std::string_view name, std::string_view where) {
  if (name != "bytes")
    throw_input(fmt::format("unknown tokenizer '{}'", name), std::string(where), "one of: bytes");
}

std::vector<std::int32_t> encode_bytes(std::string_view text) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string decode_bytes(std::span<const std::int32_t> tokens) {
  std::string text;
  text.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    CONCERTINA_CHECK(token >= 0 && token < kByteVocabulary, "token {}", token);
    text += static_cast<char>(token);
  }
  return text;
}

std::string escape_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else if (c == '\\')
      text += "\\\\";
    else if (c >= ' ' && c <= '~')
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace concertina
