// The bytes tokenizer: no files, any text, 256 tokens.

#include "core/error.h"
#include "io/sha256.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina::tokenizer_kinds {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 256; }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    tokens.reserve(tokens.size() + text.size());
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    text.reserve(tokens.size());
    for (const std::int32_t token : tokens) {
      CONCERTINA_CHECK(token >= 0 && token < vocabulary(), "token {} is not a byte", token);
      text += static_cast<char>(token);
    }
    return text;
  }
  std::optional<std::int32_t> special(SpecialToken /*which*/) const override {
    return std::nullopt;
  }
  std::string name(std::int32_t token) const override { return decode({&token, 1}); }
  std::string fingerprint() const override { return sha256_hex(kBytesTokenizer); }
  std::size_t cut(std::string_view text, std::size_t from) const override {
    return std::min(from, text.size());
  }
};

}  // namespace

std::unique_ptr<Tokenizer> bytes() {
  return std::make_unique<ByteTokenizer>();
}

}  // namespace concertina::tokenizer_kinds
