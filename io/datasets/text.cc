// data.format = "text": files of text, joined; a token is what data.tokenizer makes of it.
#include <array>

#include "core/error.h"
#include "io/datasets/windows.h"
#include "io/tokenizer.h"

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

std::unique_ptr<Dataset> make_text(const DataOptions& options) {
  require_tokenizer(options.tokenizer, "data.tokenizer");
  windows_are_fixed(options.windows);
  std::array<std::uint64_t, 3> sizes{Corpus(options.files, "data.text").size(), 0, 0};
  std::vector<std::string> files = options.files;
  if (options.validation_files.empty()) {
    sizes[1] = held_out(sizes[0], options.validation);
    sizes[0] -= sizes[1];
  } else {
    sizes[1] = Corpus(options.validation_files, "data.validation_files").size();
    files.insert(files.end(), options.validation_files.begin(), options.validation_files.end());
  }
  if (!options.test_files.empty()) {
    sizes[2] = Corpus(options.test_files, "data.test_files").size();
    files.insert(files.end(), options.test_files.begin(), options.test_files.end());
  }
  auto corpus = std::make_shared<const Corpus>(files, "data.text");
  auto tokens = std::make_unique<ByteTokens>(corpus);
  std::string begins = beginning_of(*corpus);
  return windowed_dataset(options, {.corpus = std::move(corpus),
                                    .tokens = std::move(tokens),
                                    .sizes = sizes,
                                    .vocabulary = kByteVocabulary,
                                    .begins = std::move(begins)});
}

}  // namespace

DatasetFormat text() {
  return {.make = make_text, .varies = windows_vary, .files_key = "data.text"};
}

}  // namespace concertina::dataset_makers
