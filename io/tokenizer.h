// The tokenizer "bytes": a token is a byte, the vocabulary is 256.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace concertina {

inline constexpr std::int64_t kByteVocabulary = 256;

/// Throws an input error that lists the valid names unless `name` is one.
void require_tokenizer(std::string_view name, std::string_view where);

std::vector<std::int32_t> encode_bytes(std::string_view text);
/// Tokens in [0, 256); the bytes need not be valid UTF-8.
std::string decode_bytes(std::span<const std::int32_t> tokens);
/// The text for a terminal: printable ASCII as it is, all else as \n, \t, \\ or \xHH.
std::string escape_bytes(std::string_view bytes);

}  // namespace concertina
