// Sentences between the marks of their tokenizer, as in BERT: [CLS] a [SEP], or [CLS] a [SEP] b
// [SEP] (Devlin et al., 2019). Invariant: every sample has T tokens; longer input is truncated by a
// fixed rule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// A tokenizer and its sentence marks: those specified by its files, or [CLS] a [SEP] b [SEP] if it
/// has such tokens. For a tokenizer of running text (like GPT-2's), the begin and end tokens are
/// used, and padding is a different token, so that the last non-padding token can be found.
/// Otherwise, the marks are ids beyond its vocabulary.
class SentenceEncoder {
 public:
  /// A null `tokenizer` means bytes. `masks`: whether mask() must differ from all text tokens.
  explicit SentenceEncoder(std::shared_ptr<const Tokenizer> tokenizer, bool masks = false);

  /// Tokens, including marks, are in [0, vocabulary()).
  std::int64_t vocabulary() const { return vocabulary_; }
  std::int32_t classify() const { return classify_; }
  std::int32_t separator() const { return separator_; }
  /// Returns the sequence of marks and texts for one sentence, or for a pair.
  std::span<const Marks::Part> parts(bool pair) const { return pair ? marks_.pair : marks_.single; }
  /// Number of marks in a sample, and of marks before its text (for a pair, its second text).
  std::int64_t marks(bool pair) const { return std::ssize(parts(pair)) - (pair ? 2 : 1); }
  std::int64_t marks_before(bool pair) const;
  std::int32_t mask() const { return mask_; }
  std::int32_t padding() const { return padding_; }
  bool is_mark(std::int32_t token) const {
    return token == classify_ || token == separator_ || token == mask_ || token == padding_ ||
           std::ranges::any_of(marks_.pair, [&](const Marks::Part& part) {
             return part.text < 0 && part.token == token;
           });
  }
  /// Appends the tokens of `text` without marks. Thread-safe.
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
    tokenizer_->encode(text, tokens);
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::int64_t vocabulary_ = 0;
  Marks marks_;
  std::int32_t classify_ = 0, separator_ = 0, mask_ = 0, padding_ = 0;
};

/// Truncates a and b at their ends to `room` tokens in total, always shortening the longer one, or
/// b if they are equally long, as BERT's scripts do.
void truncate_pair(std::vector<std::int32_t>& a, std::vector<std::int32_t>& b, std::size_t room);

/// Writes a, or a and b, with their marks, such as [CLS] a [SEP] b [SEP], and padding to tokens
/// [T]; the token types to types [T] (such as 1 for b and its [SEP], else 0); and the number of
/// non-padding tokens to length. Empty views are skipped. The tokens must fit.
void write_sentences(const SentenceEncoder& encoder, std::span<const std::int32_t> a,
                     std::span<const std::int32_t> b, bool pair, std::int64_t room, View tokens,
                     View types, View length);

}  // namespace concertina
