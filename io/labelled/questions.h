// Questions about texts: what a span of tokens says, and what the right answers are.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/datasets/dataset.h"

namespace concertina {

/// Beside its samples, a dataset of questions has this: a long text is cut into several samples of
/// one question, and the likeliest span of any of them is the answer.
class QuestionAnswers {
 public:
  virtual ~QuestionAnswers() = default;
  virtual std::uint64_t questions(Split split) const = 0;
  /// The question of a sample, in [0, questions(split)); ascends with the sample.
  virtual std::uint64_t question(Split split, std::uint64_t sample) const = 0;
  virtual std::span<const std::string> answers(Split split, std::uint64_t question) const = 0;
  /// Returns the text of tokens [start, end] of a sample; empty where they are not of its text, and
  /// where another sample of the question has the start with more text around it: none of those
  /// answers.
  virtual std::string text(Split split, std::uint64_t sample, std::int32_t start,
                           std::int32_t end) const = 0;
};

}  // namespace concertina
