// Long token sequences, split into samples of T tokens; each token's target is its successor.
// Invariants: an epoch contains each of its windows once; held-out tokens are never trained on.
//
// Dimensions: T tokens per sample, N tokens in the training part.
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

/// Random access to a sequence of tokens.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual std::uint64_t size() const = 0;
  /// Reads tokens [begin, begin + tokens.size()). Thread-safe.
  virtual void read(std::uint64_t begin, std::span<std::int32_t> tokens) const = 0;
  /// See Dataset::verify().
  virtual void verify(const std::function<void()>& progress) const = 0;
};

/// Tokens in memory, with 4 bytes per token.
class TokenList final : public TokenSequence {
 public:
  explicit TokenList(std::vector<std::int32_t> tokens) : tokens_(std::move(tokens)) {}
  std::uint64_t size() const override { return tokens_.size(); }
  void read(std::uint64_t begin, std::span<std::int32_t> tokens) const override {
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(begin), tokens.size(),
                tokens.begin());
  }
  void verify(const std::function<void()>&) const override {}  // the tokenizer has read all of it

 private:
  std::vector<std::int32_t> tokens_;
};

/// Epoch e has floor((N - 1 - offset_e) / T) windows, starting at a random offset_e in [0, T). If
/// windows are fixed, offset_e is 0, and the last (N - 1) mod T targets are unused.
struct WindowCut {
  std::uint64_t tokens = 0, length = 1;  // N, T
  bool fixed = false;

  std::uint64_t offset(std::uint64_t seed, std::uint64_t epoch) const;
  std::uint64_t count(std::uint64_t seed, std::uint64_t epoch) const {
    return (tokens - 1 - offset(seed, epoch)) / length;
  }
  /// Returns the first token of window `sample`.
  std::uint64_t begin(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) const {
    return offset(seed, epoch) + sample * length;
  }
};

/// The tokens of a WindowedDataset and their origin. `sizes` are the token counts of the splits,
/// which are contiguous in `tokens`.
struct WindowedTokens {
  std::shared_ptr<const Corpus> corpus;
  std::unique_ptr<const TokenSequence> tokens;
  std::array<std::uint64_t, 3> sizes{};
  std::array<std::uint64_t, 3> text{};  // bytes of the corpus per split; 0: unknown
  std::int64_t vocabulary = 0;
  std::string word = "byte";                     // name of a token in messages
  std::string begins;                            // human-readable start of the text
  std::string columns{};                         // for tables, a line that names the columns read
  std::shared_ptr<const Splits> splits{};        // of documents; null for one text
  std::shared_ptr<const Tokenizer> tokenizer{};  // of all tokens; null: unknown
  double most_overlap = 1;          // between held-out and training data (data.most_overlap)
  std::array<bool, 3> own_files{};  // whether a held-out part has separate files
};

/// Whether data.windows is "fixed".
bool windows_are_fixed(const DataOptions& options);
/// How an epoch splits a long text into samples: from a new random offset each time, so that all
/// windows occur, or always from the start, so that samples repeat.
inline constexpr std::string_view kWindowsNames[] = {"shifted", "fixed"};
/// Returns the option for long texts.
std::vector<Option> window_options();
std::optional<Variation> windows_vary(const DataOptions& options);
/// Returns WindowedTokens::own_files.
inline std::array<bool, 3> own_files(const DataOptions& options) {
  return {true, !options.validation_files.empty(), !options.test_files.empty()};
}
/// Returns the number of tokens at the end of `tokens` that a `share` in [0, 1) holds out.
std::uint64_t held_out(std::uint64_t tokens, double share);

/// Throws Error{bad_input} if a split is too short.
std::unique_ptr<Dataset> windowed_dataset(const DataOptions& options, WindowedTokens parts);

}  // namespace concertina
