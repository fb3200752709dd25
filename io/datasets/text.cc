// data.format = "text": concatenated text files, tokenized with data.tokenizer.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "io/corpus.h"
#include "io/datasets/windows.h"
#include "io/for_all.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina::dataset_makers {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

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
      throw_input(fmt::format("{}, relative to byte {}", error.message(),
                              begin + static_cast<std::uint64_t>(pieces[i].data() - text.data())),
                  corpus.files()[0], error.fix());
    }
  });
  for (std::vector<std::int32_t>& one : encoded) {
    tokens.insert(tokens.end(), one.begin(), one.end());
    one = {};
  }
}

/// Encodes the corpus on all cores of this process, each part separately. Converts `sizes`, the
/// consecutive sizes of the parts, from bytes to tokens. Throws Error{bad_input} naming the file
/// and byte if a part is not UTF-8.
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

class ByteTokens final : public TokenSequence {
 public:
  explicit ByteTokens(std::shared_ptr<const Corpus> corpus) : corpus_(std::move(corpus)) {}
  std::uint64_t size() const override { return corpus_->size(); }
  void read(std::uint64_t begin, std::span<std::int32_t> tokens) const override {
    std::array<std::byte, 4096> chunk;
    for (std::size_t done = 0; done < tokens.size();) {
      const std::size_t n = std::min(tokens.size() - done, chunk.size());
      corpus_->read(begin + done, std::span(chunk).first(n));
      for (std::size_t i = 0; i < n; ++i)
        tokens[done + i] = std::to_integer<std::int32_t>(chunk[i]);
      done += n;
    }
  }
  void verify(const std::function<void()>&) const override {}  // any byte is a valid token

 private:
  std::shared_ptr<const Corpus> corpus_;
};

std::string beginning_of(const Corpus& corpus) {
  std::array<std::byte, 72> start;
  const auto shown = std::span(start).first(std::min<std::uint64_t>(start.size(), corpus.size()));
  corpus.read(0, shown);
  return escape_bytes({reinterpret_cast<const char*>(shown.data()), shown.size()});
}

/// Returns the files of all splits, in order, and the number of bytes of each split.
std::shared_ptr<const Corpus> corpus_of(const DataOptions& options,
                                        std::array<std::uint64_t, 3>& bytes) {
  bytes = {Corpus(options.files, "data.text").size(), 0, 0};
  std::vector<std::string> files = options.files;
  const auto add = [&](const std::vector<std::string>& more, const std::string& key) {
    files.insert(files.end(), more.begin(), more.end());
    return more.empty() ? 0 : Corpus(more, key).size();
  };
  bytes[1] = add(options.validation_files, "data.validation_files");
  bytes[2] = add(options.test_files, "data.test_files");
  auto corpus = std::make_shared<const Corpus>(files, "data.text", /*joined=*/true);
  corpus->require_utf8(/*mark=*/false);
  return corpus;
}

/// The text of tokens [first, first + count) ends at byte `bytes` of the corpus. Returns its length
/// in bytes, or 0 if the tokenizer does not reproduce it exactly.
std::uint64_t bytes_of_last(const Corpus& corpus, std::uint64_t bytes, const TokenSequence& all,
                            std::uint64_t first, std::uint64_t count, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> tokens(count);
  all.read(first, tokens);
  const std::string decoded = tokenizer.decode(tokens);
  if (decoded.size() > bytes) return 0;
  std::string text(decoded.size(), '\0');
  corpus.read(bytes - text.size(), std::as_writable_bytes(std::span(text)));
  return text == decoded ? text.size() : 0;
}

std::unique_ptr<Dataset> make_text(const DataOptions& options) {
  const std::shared_ptr<const Tokenizer> tokenizer = or_bytes(options.tokenizer);
  const bool bytes = tokenizer->fingerprint() == or_bytes(nullptr)->fingerprint();
  WindowedTokens parts;
  std::array<std::uint64_t, 3> sizes{};
  parts.corpus = corpus_of(options, sizes);
  parts.text = sizes;
  if (bytes)
    parts.tokens = std::make_unique<ByteTokens>(parts.corpus);
  else
    parts.tokens = encoded_text(*parts.corpus, *tokenizer, sizes);
  if (options.validation_files.empty()) {
    sizes[1] = held_out(sizes[0], options.validation);
    sizes[0] -= sizes[1];
    parts.text[1] = bytes ? sizes[1]
                          : bytes_of_last(*parts.corpus, parts.text[0], *parts.tokens, sizes[0],
                                          sizes[1], *tokenizer);
    parts.text[0] -= parts.text[1];
  }
  parts.sizes = sizes;
  parts.most_overlap = options.most_overlap;
  parts.own_files = own_files(options);
  parts.vocabulary = tokenizer->vocabulary();
  parts.tokenizer = tokenizer;
  if (!bytes) parts.word = "token";
  parts.begins = beginning_of(*parts.corpus);
  return windowed_dataset(options, std::move(parts));
}

}  // namespace

DatasetFormat text() {
  return {.make = make_text,
          .varies = windows_vary,
          .files_key = "data.text",
          .options = window_options()};
}

}  // namespace concertina::dataset_makers
