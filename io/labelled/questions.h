// Questions about texts: the text of a span of tokens, and the reference answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/datasets/dataset.h"

namespace concertina {

/// Additional interface of a dataset of questions. A long text is split into several samples of one
/// question; the most likely span in any of these samples is the answer.
class QuestionAnswers {
 public:
  virtual ~QuestionAnswers() = default;
  virtual std::uint64_t questions(Split split) const = 0;
  /// Returns the question of a sample, in [0, questions(split)). Samples are ordered by question.
  virtual std::uint64_t question(Split split, std::uint64_t sample) const = 0;
  virtual std::span<const std::string> answers(Split split, std::uint64_t question) const = 0;
  /// Returns the text of tokens [start, end] of a sample. Returns an empty string if they are not
  /// in its text, or if another sample of the question has more context around the start: such a
  /// span is not an answer.
  virtual std::string text(Split split, std::uint64_t sample, std::int32_t start,
                           std::int32_t end) const = 0;
};

}  // namespace concertina
