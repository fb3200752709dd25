#include "io/squad_score.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace concertina {
namespace {

/// Returns the code point at `at` and advances `at` past it. An invalid byte is returned as a
/// negative value.
std::int32_t next_code_point(std::string_view text, std::size_t& at) {
  utf8proc_int32_t code = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (length <= 0) return -1 - static_cast<unsigned char>(text[at++]);
  at += static_cast<std::size_t>(length);
  return code;
}

void append_code_point(std::int32_t code, std::string& text) {
  if (code < 0) {
    text.push_back(static_cast<char>(-1 - code));
    return;
  }
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(code, bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

/// Like Python's str.split().
bool is_python_space(std::int32_t code) {
  return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

/// Like \w in Python's re.
bool is_python_word(std::int32_t code) {
  if (code < 0) return false;
  const utf8proc_category_t category = utf8proc_category(code);
  return code == '_' || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_ascii_punctuation(std::int32_t code) {
  return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
         (code >= 123 && code <= 126);
}

using CodePoints = std::vector<std::int32_t>;

bool is_article(std::span<const std::int32_t> word) {
  constexpr std::u32string_view kArticles[] = {U"a", U"an", U"the"};
  return std::ranges::any_of(kArticles, [&](std::u32string_view article) {
    return std::ranges::equal(word, article, [](std::int32_t a, char32_t b) {
      return std::cmp_equal(a, static_cast<std::uint32_t>(b));
    });
  });
}

/// Replaces each article that is a whole word with a space.
CodePoints without_articles(const CodePoints& text) {
  CodePoints kept;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_python_word(text[end])) ++end;
    const auto word = std::span(text).subspan(begin, end - begin);
    if (is_article(word))
      kept.push_back(' ');
    else
      kept.insert(kept.end(), word.begin(), word.end());
    if (end < text.size()) kept.push_back(text[end++]);
    begin = end;
  }
  return kept;
}

std::vector<std::string> words_of(std::string_view normalized) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < normalized.size();) {
    const std::size_t end = std::min(normalized.find(' ', begin), normalized.size());
    words.emplace_back(normalized.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
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
  CodePoints text;
  for (std::size_t at = 0; at < answer.size();) {
    const std::int32_t code = next_code_point(answer, at);
    const std::int32_t lower = code < 0 ? code : utf8proc_tolower(code);
    if (!is_ascii_punctuation(lower)) text.push_back(lower);
  }
  std::string normalized;
  bool space = false;
  for (const std::int32_t code : without_articles(text)) {
    if (is_python_space(code)) {
      space = !normalized.empty();
      continue;
    }
    if (space) normalized.push_back(' ');
    space = false;
    append_code_point(code, normalized);
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
