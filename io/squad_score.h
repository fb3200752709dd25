// How close an answer is to the right ones: exact match and F1 as SQuAD's own script has them
// (evaluate-v1.1.py, Rajpurkar et al., 2016).
// Invariant: pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace concertina {

/// Lower case, no ASCII punctuation, no word a, an or the, one space between words. Bytes that are
/// not UTF-8 are left as they are.
std::string normalize_answer(std::string_view answer);

struct AnswerScore {
  double exact = 0, f1 = 0;  // in [0, 1]
};

/// The best of `prediction` against each of the right answers, of each figure alone. No answers: 0.
AnswerScore score_answer(std::string_view prediction, std::span<const std::string> answers);

}  // namespace concertina
