// data.format = "tokens": tokenized text (see io/datasets/token_run.h for the formats). Documents
// are contiguous; separators are tokens in the files.
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "io/datasets/packed.h"
#include "io/datasets/split_files.h"
#include "io/datasets/token_run.h"
#include "io/datasets/windows.h"
#include "io/for_all.h"
#include "io/token_file.h"

namespace concertina::dataset_makers {
namespace {

class TokenFiles final : public TokenSequence {
 public:
  TokenFiles(std::shared_ptr<const Corpus> corpus, std::vector<TokenRun> runs,
             std::int64_t vocabulary)
      : corpus_(std::move(corpus)), runs_(std::move(runs)), vocabulary_(vocabulary) {}

  std::uint64_t size() const override {
    return runs_.empty() ? 0 : runs_.back().first + runs_.back().size;
  }

  void read(std::uint64_t begin, std::span<std::int32_t> tokens) const override {
    auto run = std::partition_point(runs_.begin(), runs_.end(), [&](const TokenRun& one) {
      return one.first + one.size <= begin;
    });
    for (; !tokens.empty(); ++run) {
      const std::uint64_t at = begin - run->first;
      const std::size_t n = std::min<std::uint64_t>(tokens.size(), run->size - at);
      read_part(*run, at, tokens.first(n));
      tokens = tokens.subspan(n);
      begin += n;
    }
  }

  void verify(const std::function<void()>& progress) const override {
    for (const TokenRun& run : runs_)
      if (run.hashed) TokenFile(run.path).verify(progress);
    static constexpr std::uint64_t kPiece = 1 << 20;
    for_all((size() + kPiece - 1) / kPiece, progress, [this](std::uint64_t piece) {
      std::vector<std::int32_t> tokens(std::min(kPiece, size() - piece * kPiece));
      read(piece * kPiece, tokens);  // throws if one is outside the vocabulary
    });
  }

 private:
  void read_part(const TokenRun& run, std::uint64_t at, std::span<std::int32_t> tokens) const {
    std::array<std::byte, 4096> chunk;
    const auto width = static_cast<std::size_t>(run.width);
    for (std::size_t done = 0; done < tokens.size();) {
      const std::size_t n = std::min(tokens.size() - done, chunk.size() / width);
      corpus_->read(run.bytes_before + (at + done) * width, std::span(chunk).first(n * width));
      for (std::size_t i = 0; i < n; ++i) {
        std::int64_t token = 0;
        std::memcpy(&token, chunk.data() + i * width, width);
        if (run.is_signed && width < 8) token = token << (64 - 8 * width) >> (64 - 8 * width);
        if (token < 0 || token >= vocabulary_)
          refuse_tokens(
              fmt::format("token {} is not in the vocabulary [0, {})", token, vocabulary_),
              run.path, run.offset + (at + done + i) * width,
              "set model.vocab to the file tokenizer's vocabulary size");
        tokens[done + i] = static_cast<std::int32_t>(token);
      }
      done += n;
    }
  }

  std::shared_ptr<const Corpus> corpus_;
  std::vector<TokenRun> runs_;
  std::int64_t vocabulary_;
};

/// Describes the tokenizer with this fingerprint in a comparison with `other`.
std::string called(const std::string& fingerprint, const std::string& other) {
  if (fingerprint == or_bytes(nullptr)->fingerprint())
    return fmt::format("\"{}\"", kBytesTokenizer);
  constexpr std::size_t kShown = 12;
  if (fingerprint.substr(0, kShown) == other.substr(0, kShown))
    return fmt::format("the one whose fingerprint is {}", fingerprint);
  return fmt::format("the one whose fingerprint is {}...", fingerprint.substr(0, kShown));
}

/// Requires files that name their tokenizer to have the same one, namely data.tokenizer.
void require_one_tokenizer(const std::vector<TokenRun>& runs, const DataOptions& options) {
  const TokenRun* first = nullptr;
  for (const TokenRun& run : runs) {
    if (run.tokenizer.empty()) continue;
    if (first == nullptr) first = &run;
    if (run.tokenizer != first->tokenizer)
      throw_input(fmt::format("{} and {} have different tokenizers", first->path, run.path),
                  std::string(find_format(options.format).files_key), "use one tokenizer for all");
  }
  if (first == nullptr || options.tokenizer == nullptr) return;
  const std::string given = options.tokenizer->fingerprint();
  if (given != first->tokenizer)
    throw_input(
        fmt::format("{} was written with a different tokenizer: {}, but data.tokenizer is {}",
                    first->path, called(first->tokenizer, given), called(given, first->tokenizer)),
        "data.tokenizer", "set data.tokenizer to the tokenizer of the file");
}

/// Returns the start of the text if it was tokenized with data.tokenizer, otherwise "".
std::string begins_with(const TokenSequence& tokens, const std::vector<TokenRun>& runs,
                        const DataOptions& options) {
  constexpr std::size_t kShown = 72;  // bytes
  if (runs.empty() || options.tokenizer == nullptr ||
      runs.front().tokenizer != options.tokenizer->fingerprint())
    return "";
  std::vector<std::int32_t> start(std::min<std::uint64_t>(kShown, runs.front().size));
  tokens.read(0, start);
  return escape_bytes(options.tokenizer->decode(start).substr(0, kShown));
}

/// Returns the starts of the documents of all files, and the end.
std::vector<std::uint64_t> bounds_of(const std::vector<TokenRun>& runs) {
  std::vector<std::uint64_t> bounds{0};
  for (const TokenRun& run : runs) {
    if (!run.parted)
      throw_input(fmt::format("{} lacks document boundaries", run.path), "data.documents",
                  "use data.documents = \"joined\", or files from `data prepare` or Megatron");
    append_bounds(run, bounds);
  }
  return bounds;
}

std::unique_ptr<Dataset> make_tokens(const DataOptions& options) {
  SplitFiles files = split_files(options);
  std::vector<TokenRun> runs;
  std::array<std::uint64_t, 3> sizes{};
  std::vector<std::string> all;
  std::uint64_t bytes_before = 0, first = 0;
  for (std::size_t split = 0; split < 3; ++split)
    for (const std::string& path : files.of[split]) {
      const std::uint64_t bytes = std::filesystem::file_size(path);
      TokenRun run = read_token_run(path, bytes, options.vocabulary);
      run.bytes_before = bytes_before + run.offset;
      run.first = first;
      all.push_back(path);
      bytes_before += bytes;
      first += run.size;
      sizes[split] += run.size;
      if (run.size > 0) runs.push_back(std::move(run));
    }
  for (std::size_t i = all.size(); i-- > 0;)  // an index determines the meaning of its tokens
    if (std::string index = adjacent_index(all[i]); !index.empty()) all.push_back(std::move(index));
  if (options.validation_files.empty()) {
    sizes[1] = held_out(sizes[0], options.validation);
    sizes[0] -= sizes[1];
  }
  require_one_tokenizer(runs, options);
  std::int64_t vocabulary = 0;
  for (const TokenRun& run : runs) vocabulary = std::max(vocabulary, run.vocabulary);
  auto corpus = std::make_shared<const Corpus>(all, "data.files", /*joined=*/true);
  auto tokens = std::make_unique<TokenFiles>(corpus, runs, options.vocabulary);
  const bool is_readable =
      options.tokenizer != nullptr && std::ranges::all_of(runs, [&](const TokenRun& run) {
        return run.tokenizer == options.tokenizer->fingerprint();
      });
  std::string begins = begins_with(*tokens, runs, options);
  WindowedTokens parts{.corpus = std::move(corpus),
                       .tokens = std::move(tokens),
                       .sizes = sizes,
                       .vocabulary = vocabulary,
                       .word = "token",
                       .begins = std::move(begins),
                       .tokenizer = is_readable ? options.tokenizer : nullptr,
                       .most_overlap = options.most_overlap,
                       .own_files = own_files(options)};
  if (options.documents == "packed")
    return packed_dataset(options, std::move(parts), bounds_of(runs));
  return windowed_dataset(options, std::move(parts));
}

}  // namespace

DatasetFormat tokens() {
  return {.make = make_tokens,
          .varies = [](const DataOptions& options) -> std::optional<Variation> {
            return options.documents == "packed" ? std::nullopt : windows_vary(options);
          },
          .keys = {"data.documents"},
          .binary = true,
          .options = window_options()};
}

}  // namespace concertina::dataset_makers
