#include "io/datasets/encoded_text.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "io/for_all.h"

namespace concertina {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

class TokenList final : public TokenSequence {
 public:
  explicit TokenList(std::vector<std::int32_t> tokens) : tokens_(std::move(tokens)) {}
  std::uint64_t size() const override { return tokens_.size(); }
  void read(std::uint64_t begin, std::span<std::int32_t> tokens) const override {
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(begin), tokens.size(),
                tokens.begin());
  }

 private:
  std::vector<std::int32_t> tokens_;
};

std::vector<std::string_view> pieces_of(std::string_view text, const Tokenizer& tokenizer) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const std::size_t end =
        text.size() <= kPieceBytes ? text.size() : tokenizer.cut(text, kPieceBytes);
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

void append_part(const Corpus& corpus, std::uint64_t begin, std::uint64_t size,
                 const Tokenizer& tokenizer, std::vector<std::int32_t>& tokens) {
  std::string text(size, '\0');
  corpus.read(begin, std::as_writable_bytes(std::span(text)));
  const std::vector<std::string_view> pieces = pieces_of(text, tokenizer);
  std::vector<std::vector<std::int32_t>> encoded(pieces.size());
  for_all(pieces.size(), {}, [&](std::size_t i) {
    try {
      tokenizer.encode(pieces[i], encoded[i]);
    } catch (const Error& error) {
      throw_input(fmt::format("{}, counted from byte {}", error.message(),
                              begin + static_cast<std::uint64_t>(pieces[i].data() - text.data())),
                  corpus.files()[0], error.fix());
    }
  });
  for (std::vector<std::int32_t>& one : encoded) {
    tokens.insert(tokens.end(), one.begin(), one.end());
    one = {};
  }
}

}  // namespace

std::unique_ptr<const TokenSequence> encoded_text(const Corpus& corpus, const Tokenizer& tokenizer,
                                                  std::array<std::uint64_t, 3>& sizes) {
  std::vector<std::int32_t> tokens;
  std::uint64_t begin = 0;
  for (std::uint64_t& size : sizes) {
    const std::uint64_t before = tokens.size(), bytes = size;
    append_part(corpus, begin, bytes, tokenizer, tokens);
    begin += bytes;
    size = tokens.size() - before;
  }
  return std::make_unique<TokenList>(std::move(tokens));
}

}  // namespace concertina
