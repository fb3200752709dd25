// Sentences as BERT reads them: [CLS] a [SEP], or [CLS] a [SEP] b [SEP] (Devlin et al., 2019).
// Invariant: every sample has T tokens; what is too long is cut by a stated rule.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// A tokenizer and the ids that mark sentences: its own where it has them. One of running text (of
/// GPT-2, Llama) has marks for its begin and end, which are taken then, and padding is a token that
/// is not the end, so that whoever looks for the last token that is no padding finds it. Else they
/// are ids after its vocabulary.
class SentenceEncoder {
 public:
  /// `tokenizer` null: bytes. `masks`: mask() is used, and differs from text.
  explicit SentenceEncoder(std::shared_ptr<const Tokenizer> tokenizer, bool masks = false);

  /// Tokens are in [0, vocabulary()), the marks too.
  std::int64_t vocabulary() const { return vocabulary_; }
  std::int32_t classify() const { return classify_; }
  std::int32_t separator() const { return separator_; }
  std::int32_t mask() const { return mask_; }
  std::int32_t padding() const { return padding_; }
  bool is_mark(std::int32_t token) const {
    return token == classify_ || token == separator_ || token == mask_ || token == padding_;
  }
  /// Appends the tokens of `text`, without marks. For several threads at once.
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
    tokenizer_->encode(text, tokens);
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::int64_t vocabulary_ = 0;
  std::int32_t classify_ = 0, separator_ = 0, mask_ = 0, padding_ = 0;
};

/// Cuts a and b, from their ends, to `room` tokens together, from the longer one first and from b
/// where they are equally long: the rule of BERT's own scripts.
void truncate_pair(std::vector<std::int32_t>& a, std::vector<std::int32_t>& b, std::size_t room);

/// Writes [CLS] a [SEP], or with a b [CLS] a [SEP] b [SEP], then padding, to tokens [T]; to types
/// [T] 1 for b and its [SEP], else 0; to length the tokens that are not padding. An empty view is
/// not wanted. They must fit.
void write_sentences(const SentenceEncoder& encoder, std::span<const std::int32_t> a,
                     std::span<const std::int32_t> b, bool pair, std::int64_t room, View tokens,
                     View types, View length);

}  // namespace concertina
