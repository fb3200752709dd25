#include "io/squad_score.h"

#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <map>
#include <sstream>
#include <vector>

#include "core/text/utf8.h"

namespace concertina {
namespace {

constexpr std::uint32_t kInvalid = 0x110000;  // plus the byte: a byte that is not valid UTF-8

/// Like Python's str.split().
bool is_python_space(std::uint32_t code) {
  return is_white_space(code) || (code >= 28 && code <= 31);
}

/// Like \w in Python's re.
bool is_python_word(std::uint32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return code == '_' || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

/// Replaces each article that is a whole word with a space.
std::u32string without_articles(std::u32string_view text) {
  std::u32string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_python_word(text[end])) ++end;
    const std::u32string_view word = text.substr(begin, end - begin);
    kept += word == U"a" || word == U"an" || word == U"the" ? U" " : word;
    if (end < text.size()) kept += text[end++];
    begin = end;
  }
  return kept;
}

std::vector<std::string> words_of(const std::string& normalized) {
  std::istringstream words(normalized);
  return {std::istream_iterator<std::string>(words), {}};
}

double f1_of(const std::vector<std::string>& prediction, const std::vector<std::string>& answer) {
  std::map<std::string_view, int> left;
  for (const std::string& word : answer) ++left[word];
  int same = 0;
  for (const std::string& word : prediction)
    if (const auto found = left.find(word); found != left.end() && found->second-- > 0) ++same;
  if (same == 0) return 0;
  const double precision = same / static_cast<double>(prediction.size()),
               recall = same / static_cast<double>(answer.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace

std::string normalize_answer(std::string_view answer) {
  std::u32string text;
  for (std::size_t at = 0; at < answer.size();) {
    const std::uint32_t byte = static_cast<unsigned char>(answer[at]);
    const std::uint32_t lower = utf8proc_tolower(next_code(answer, at).value_or(kInvalid + byte));
    if (lower >= 0x80 || std::ispunct(static_cast<int>(lower)) == 0)
      text += static_cast<char32_t>(lower);
  }
  std::string normalized;
  bool space = false;
  for (const std::uint32_t code : without_articles(text)) {
    if (is_python_space(code)) {
      space = !normalized.empty();
      continue;
    }
    if (space) normalized.push_back(' ');
    space = false;
    if (code < kInvalid)
      append_utf8(code, normalized);
    else
      normalized.push_back(static_cast<char>(code - kInvalid));
  }
  return normalized;
}

AnswerScore score_answer(std::string_view prediction, std::span<const std::string> answers) {
  AnswerScore best;
  const std::string normalized = normalize_answer(prediction);
  const std::vector<std::string> words = words_of(normalized);
  for (const std::string& answer : answers) {
    const std::string right = normalize_answer(answer);
    if (right == normalized) best.exact = 1;
    best.f1 = std::max(best.f1, f1_of(words, words_of(right)));
  }
  return best;
}

}  // namespace concertina
