// data.format = "text": files of text, joined; a token is what data.tokenizer makes of it.
#include <array>

#include "core/error.h"
#include "io/datasets/encoded_text.h"
#include "io/datasets/windows.h"

namespace concertina::dataset_makers {
namespace {

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

 private:
  std::shared_ptr<const Corpus> corpus_;
};

std::string beginning_of(const Corpus& corpus) {
  std::array<std::byte, 72> start;
  const auto shown = std::span(start).first(std::min<std::uint64_t>(start.size(), corpus.size()));
  corpus.read(0, shown);
  return escape_bytes({reinterpret_cast<const char*>(shown.data()), shown.size()});
}

/// The files of all splits, in this order, and how many bytes each split has.
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
  return std::make_shared<const Corpus>(files, "data.text");
}

std::unique_ptr<Dataset> make_text(const DataOptions& options) {
  windows_are_fixed(options.windows);
  const std::shared_ptr<const Tokenizer> tokenizer = or_bytes(options.tokenizer);
  const bool bytes = tokenizer->fingerprint() == or_bytes(nullptr)->fingerprint();
  WindowedTokens parts;
  std::array<std::uint64_t, 3> sizes{};
  parts.corpus = corpus_of(options, sizes);
  if (bytes)
    parts.tokens = std::make_unique<ByteTokens>(parts.corpus);
  else
    parts.tokens = encoded_text(*parts.corpus, *tokenizer, sizes);
  if (options.validation_files.empty()) {
    sizes[1] = held_out(sizes[0], options.validation);
    sizes[0] -= sizes[1];
  }
  parts.sizes = sizes;
  parts.vocabulary = tokenizer->vocabulary();
  if (!bytes) parts.word = "token";
  parts.begins = beginning_of(*parts.corpus);
  return windowed_dataset(options, std::move(parts));
}

}  // namespace

DatasetFormat text() {
  return {.make = make_text, .varies = windows_vary, .files_key = "data.text", .keys = kWindowKeys};
}

}  // namespace concertina::dataset_makers
