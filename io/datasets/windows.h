// Long runs of tokens, cut into samples of T tokens and the token after each.
// Invariants: an epoch has each of its windows once; no held-out token is ever trained on.
//
// Dimensions: T tokens of a sample, N tokens of the training part.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/datasets/split_files.h"

namespace concertina {

/// Tokens by number, from wherever they are.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual std::uint64_t size() const = 0;
  /// Tokens [begin, begin + tokens.size()). For several threads at once.
  virtual void read(std::uint64_t begin, std::span<std::int32_t> tokens) const = 0;
  /// As Dataset::verify().
  virtual void verify(const std::function<void()>& progress) const = 0;
};

/// Tokens in memory: 4 bytes per token.
class TokenList final : public TokenSequence {
 public:
  explicit TokenList(std::vector<std::int32_t> tokens) : tokens_(std::move(tokens)) {}
  std::uint64_t size() const override { return tokens_.size(); }
  void read(std::uint64_t begin, std::span<std::int32_t> tokens) const override {
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(begin), tokens.size(),
                tokens.begin());
  }
  void verify(const std::function<void()>&) const override {}  // the tokenizer has read all

 private:
  std::vector<std::int32_t> tokens_;
};

/// Epoch e cuts N tokens into floor((N - 1 - offset_e) / T) windows from a random offset_e in
/// [0, T) on; where they are fixed offset_e is 0, and the last (N - 1) mod T targets are in none.
struct WindowCut {
  std::uint64_t tokens = 0, length = 1;  // N, T
  bool fixed = false;

  std::uint64_t offset(std::uint64_t seed, std::uint64_t epoch) const;
  std::uint64_t count(std::uint64_t seed, std::uint64_t epoch) const {
    return (tokens - 1 - offset(seed, epoch)) / length;
  }
  /// The token that window `sample` begins with.
  std::uint64_t begin(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) const {
    return offset(seed, epoch) + sample * length;
  }
};

/// The tokens of a WindowedDataset and their origin. `sizes`: tokens of the splits, one after the
/// other in `tokens`.
struct WindowedTokens {
  std::shared_ptr<const Corpus> corpus;
  std::unique_ptr<const TokenSequence> tokens;
  std::array<std::uint64_t, 3> sizes{};
  std::array<std::uint64_t, 3> text{};  // bytes of the corpus likewise; 0: not known
  std::int64_t vocabulary = 0;
  std::string word = "byte";                     // what a token is called
  std::string begins;                            // how the text begins, for a person
  std::string columns{};                         // of tables: a line that says which were read
  std::shared_ptr<const Splits> splits{};        // of documents; null: it is one text
  std::shared_ptr<const Tokenizer> tokenizer{};  // of all tokens; null: not known
  double most_overlap = 1;          // of a held-out part, with training (data.most_overlap)
  std::array<bool, 3> own_files{};  // whether a held-out part has files of its own
};

/// Whether data.windows says fixed ones; an unknown name is an input error.
bool windows_are_fixed(const DataOptions& options);
/// How an epoch cuts a long text into samples: each from another random offset, so that every cut
/// is seen, or all from the start, so that the same samples come again.
inline constexpr std::string_view kWindowsNames[] = {"shifted", "fixed"};
/// The option of long texts.
std::vector<Option> window_options();
std::optional<Variation> windows_vary(const DataOptions& options);
/// For WindowedTokens.
inline std::array<bool, 3> own_files(const DataOptions& options) {
  return {true, !options.validation_files.empty(), !options.test_files.empty()};
}
/// Tokens at the end of `tokens` that the share data.validation holds out.
std::uint64_t held_out(std::uint64_t tokens, double share);

/// Input errors: a split too short.
std::unique_ptr<Dataset> windowed_dataset(const DataOptions& options, WindowedTokens parts);

}  // namespace concertina
