// Shared by tests of tokenizers: files of tests/golden, the hashes of tokens and texts in
// make_tokenizers.py, and texts that are cut.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "io/file.h"
#include "io/tokenizers/tokenizer.h"
#include "tests/io/tokenizer_corpus.h"

namespace concertina {

inline const std::string kGolden = CONCERTINA_SOURCE "/tests/golden/";
inline const std::string kTokenizers = kGolden + "tokenizers/";

inline std::string golden_text(const std::string& name) {
  return read_file(kGolden + name, 1 << 24);
}

/// Returns the 64-bit FNV-1a hash in hexadecimal.
inline std::string hash_of(std::span<const std::byte> bytes) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const std::byte byte : bytes)
    value = (value ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3;
  return fmt::format("{:016x}", value);
}

/// Compares the tokens of each chunk with rows of [count, hash of the tokens, hash of their text].
/// Returns the total bytes of the chunks.
inline std::size_t expect_chunks(const Tokenizer& tokenizer, const nlohmann::json& rows,
                                 std::uint64_t seed) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string text = tokenizer_corpus::chunk(seed, i);
    bytes += text.size();
    const std::vector<std::int32_t> tokens = tokenizer.tokens(text);
    const std::string decoded = tokenizer.decode(tokens);
    const nlohmann::json got{tokens.size(), hash_of(std::as_bytes(std::span(tokens))),
                             hash_of(std::as_bytes(std::span(decoded)))};
    EXPECT_EQ(got, rows[i]) << "chunk " << i;
    if (got != rows[i]) break;
  }
  return bytes;
}

/// Cuts a text after every `step` bytes: the parts must have the tokens of the whole. Returns how
/// often the cut was within the text.
inline int expect_cuts(const Tokenizer& tokenizer, std::string_view text, std::size_t step) {
  int cuts = 0;
  const std::vector<std::int32_t> whole = tokenizer.tokens(text);
  for (std::size_t from = 1; from < text.size(); from += step) {
    const std::size_t cut = tokenizer.cut(text, from);
    EXPECT_TRUE(cut >= from && cut <= text.size());
    cuts += cut < text.size() ? 1 : 0;
    std::vector<std::int32_t> parts = tokenizer.tokens(text.substr(0, cut));
    tokenizer.encode(text.substr(cut), parts);
    EXPECT_EQ(parts, whole) << "byte " << cut << " of " << text;
    if (parts != whole) break;
  }
  return cuts;
}

}  // namespace concertina
