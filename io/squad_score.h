// Exact match and F1 of an answer compared with the reference answers, as computed by SQuAD's
// script (evaluate-v1.1.py, Rajpurkar et al., 2016). Invariant: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace concertina {

/// Lower-cases, removes ASCII punctuation and the words a, an and the, and collapses whitespace.
/// Bytes that are not valid UTF-8 are kept.
std::string normalize_answer(std::string_view answer);

struct AnswerScore {
  double exact = 0, f1 = 0;  // in [0, 1]
};

/// Returns, for each metric, the best score of `prediction` over all answers; 0 if there are none.
AnswerScore score_answer(std::string_view prediction, std::span<const std::string> answers);

}  // namespace concertina
