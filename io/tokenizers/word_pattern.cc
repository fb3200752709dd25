#include "io/tokenizers/word_pattern.h"

#include <array>

#include "core/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace concertina {
namespace {

/// Unicode's White_Space, which \s means in the regular expressions of `tokenizers`; that of PCRE2
/// has U+180E too, which is none since Unicode 6.3.
#define CONCERTINA_SPACE \
  R"(\t-\r\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"

struct KnownPattern {
  std::string_view pattern;  // as models publish it
  const char* here;          // the same for PCRE2
};

constexpr KnownPattern kGpt2{
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" CONCERTINA_SPACE R"(\p{L}\p{N}]+|[)"  //
    CONCERTINA_SPACE R"(]+(?![^)" CONCERTINA_SPACE R"(])|[)" CONCERTINA_SPACE R"(]+)"};
constexpr KnownPattern kLlama3{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^)" CONCERTINA_SPACE
    R"(\p{L}\p{N}]+[\r\n]*|[)" CONCERTINA_SPACE R"(]*[\r\n]+|[)" CONCERTINA_SPACE
    R"(]+(?![^)" CONCERTINA_SPACE R"(])|[)" CONCERTINA_SPACE R"(]+)"};
constexpr std::array kKnownPatterns{kGpt2, kLlama3};

pcre2_code* compiled(const char* pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* const code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
      PCRE2_ANCHORED | PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &offset, nullptr);
  CONCERTINA_CHECK(code != nullptr, "PCRE2 error {} at {}", error, offset);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it, pcre2_match() is used
  return code;
}

bool is_ascii_letter(char c) {
  return static_cast<unsigned>((c | 0x20) - 'a') < 26;
}

/// The end of a word of small and capital letters, maybe after one space, that begins at `at`; 0 if
/// none does or a character beyond ASCII follows. Both patterns take it as a word.
std::size_t plain_word_end(std::string_view text, std::size_t at) {
  std::size_t end = at + (text[at] == ' ' ? 1 : 0);
  const std::size_t letters = end;
  while (end < text.size() && is_ascii_letter(text[end])) ++end;
  const bool plain =
      end > letters && (end == text.size() || static_cast<unsigned char>(text[end]) < 0x80);
  return plain ? end : 0;
}

const pcre2_code* code_of(const void* pointer) {
  return static_cast<const pcre2_code*>(pointer);
}

}  // namespace

std::string_view WordPattern::gpt2() {
  return kGpt2.pattern;
}
std::string_view WordPattern::llama3() {
  return kLlama3.pattern;
}

WordPattern::WordPattern(std::string_view pattern, const std::string& where, bool prefix_space)
    : text_(pattern), prefix_space_(prefix_space) {
  for (const KnownPattern& known : kKnownPatterns)
    if (known.pattern == pattern) code_.reset(compiled(known.here));
  if (code_ == nullptr)
    throw_input(fmt::format("words are cut by an unknown pattern: {}", pattern.substr(0, 200)),
                where, "the pattern of GPT-2 or that of Llama 3");
}

void WordPattern::Free::operator()(void* code) const {
  pcre2_code_free(static_cast<pcre2_code*>(code));
}

WordPattern::Words::Words(const WordPattern& pattern, std::string_view text)
    : pattern_(pattern), text_(text), match_(pcre2_match_data_create(1, nullptr)) {
  CONCERTINA_CHECK(match_ != nullptr, "no memory for a match");
}

WordPattern::Words::~Words() {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(match_));
}

bool WordPattern::Words::next(std::string_view& word) {
  if (at_ >= text_.size()) return false;
  std::size_t end = plain_word_end(text_, at_);  // most words, and much faster
  if (end == 0) end = matched_end();
  word = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

std::size_t WordPattern::Words::matched_end() {
  auto* const match = static_cast<pcre2_match_data*>(match_);
  const int found =
      pcre2_match(code_of(pattern_.code_.get()), reinterpret_cast<PCRE2_SPTR>(text_.data()),
                  text_.size(), at_, PCRE2_NO_UTF_CHECK, match, nullptr);
  // Every character is a space, a letter, a number or none of them, so each place has a match.
  CONCERTINA_CHECK(found > 0, "PCRE2 error {} at byte {}", found, at_);
  const std::size_t end = pcre2_get_ovector_pointer(match)[1];
  CONCERTINA_CHECK(end > at_, "an empty word at byte {}", at_);
  return end;
}

}  // namespace concertina
