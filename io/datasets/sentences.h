// Sentences between the marks of their tokenizer, as BERT reads them: [CLS] a [SEP], or [CLS] a
// [SEP] b [SEP] (Devlin et al., 2019).
// Invariant: every sample has T tokens; what is too long is cut by a stated rule.
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

/// A tokenizer and the ids that mark sentences: where its files say what stands around a text,
/// that; else [CLS] a [SEP] b [SEP] of its own tokens. One of running text (of GPT-2) has marks for
/// its begin and end, which are taken then, and padding is a token that is not the end, so that
/// whoever looks for the last token that is no padding finds it. Else they are ids after its
/// vocabulary.
class SentenceEncoder {
 public:
  /// `tokenizer` null: bytes. `masks`: mask() is used, and differs from text.
  explicit SentenceEncoder(std::shared_ptr<const Tokenizer> tokenizer, bool masks = false);

  /// Tokens are in [0, vocabulary()), the marks too.
  std::int64_t vocabulary() const { return vocabulary_; }
  std::int32_t classify() const { return classify_; }
  std::int32_t separator() const { return separator_; }
  /// What stands around one sentence, or a pair.
  std::span<const Marks::Part> parts(bool pair) const { return pair ? marks_.pair : marks_.single; }
  /// Marks in a sample, and those before its first text, or of a pair its second.
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
  /// Appends the tokens of `text`, without marks. For several threads at once.
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
    tokenizer_->encode(text, tokens);
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::int64_t vocabulary_ = 0;
  Marks marks_;
  std::int32_t classify_ = 0, separator_ = 0, mask_ = 0, padding_ = 0;
};

/// Cuts a and b, from their ends, to `room` tokens together, from the longer one first and from b
/// where they are equally long: the rule of BERT's own scripts.
void truncate_pair(std::vector<std::int32_t>& a, std::vector<std::int32_t>& b, std::size_t room);

/// Writes a, or a and b, between their marks, such as [CLS] a [SEP] b [SEP], then padding, to
/// tokens [T]; to types [T] what the marks say (1 for b and its [SEP], else 0); to length the
/// tokens that are not padding. An empty view is not wanted. They must fit.
void write_sentences(const SentenceEncoder& encoder, std::span<const std::int32_t> a,
                     std::span<const std::int32_t> b, bool pair, std::int64_t room, View tokens,
                     View types, View length);

}  // namespace concertina
