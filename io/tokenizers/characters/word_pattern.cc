#include "io/tokenizers/characters/word_pattern.h"

#include <algorithm>

#include "core/error.h"
#include "io/tokenizers/characters/library_characters.h"
#include "io/tokenizers/characters/pattern_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace concertina {
namespace {

/// A pattern with known properties.
struct KnownPattern {
  std::string_view pattern;
  bool plain_words;  // ASCII letters, optionally after a space, are a word if ASCII follows
};

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr KnownPattern kKnownPatterns[] = {
    {kGpt2, true}, {kLlama3, true}, {kQwen2, true}, {kGpt4o, false}};

/// `everywhere` means that the pattern matches at every position.
pcre2_code* compiled(std::string_view pattern, bool newer, bool everywhere,
                     const std::string& where) {
  const std::string translated = pcre2_pattern(pattern, newer, where);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK | (everywhere ? PCRE2_ANCHORED : 0),
                    &error, &offset, nullptr);
  std::uint32_t empty = 0;
  if (code != nullptr) pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &empty);
  if (code == nullptr || empty != 0) {
    pcre2_code_free(code);
    throw_input(
        fmt::format("the pattern {} {}", pattern.substr(0, 200),
                    empty != 0 ? "matches the empty string" : "is not a valid regular expression"),
        where, "use a pattern from a published model");
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT, pcre2_match() interprets it
  return code;
}

bool is_ascii_letter(char c) {
  return static_cast<unsigned>((c | 0x20) - 'a') < 26;
}

/// Returns the end of a word of ASCII letters at `at`, optionally after a space; 0 if there is none
/// or if a non-ASCII character follows.
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

pcre2_match_data* match_of_thread() {
  struct FreeMatch {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  thread_local const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create(1, nullptr));
  CONCERTINA_CHECK(match != nullptr, "out of memory for a match");
  return match.get();
}

}  // namespace

std::string_view WordPattern::gpt2() {
  return kGpt2;
}
std::string_view WordPattern::llama3() {
  return kLlama3;
}

WordPattern::WordPattern(std::string_view pattern, const std::string& where, bool prefix_space)
    : text_(pattern), where_(where), prefix_space_(prefix_space) {
  const auto* const known = std::ranges::find(kKnownPatterns, pattern, &KnownPattern::pattern);
  keeps_lines_ = known != std::end(kKnownPatterns);
  plain_words_ = keeps_lines_ && known->plain_words;
  code_.reset(compiled(pattern, /*newer=*/false, /*everywhere=*/keeps_lines_, where));
  newer_code_.reset(compiled(pattern, /*newer=*/true, /*everywhere=*/keeps_lines_, where));
}

void WordPattern::Free::operator()(void* code) const {
  pcre2_code_free(static_cast<pcre2_code*>(code));
}

WordPattern::Words::Words(const WordPattern& pattern, std::string_view text)
    : pattern_(pattern),
      code_((has_newer_characters(text) ? pattern.newer_code_ : pattern.code_).get()),
      match_(match_of_thread()),
      text_(text) {}

bool WordPattern::Words::next(std::string_view& word, bool& matches) {
  if (at_ >= text_.size()) return false;
  std::size_t end = 0;
  if (pattern_.plain_words_) end = plain_word_end(text_, at_);  // most words, and much faster
  matches = true;
  if (end == 0) {
    if (end_ <= at_) find();
    matches = begin_ == at_;
    end = matches ? end_ : begin_;
  }
  word = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

/// Finds the first match from at_ on. If there is none, sets end_ to beyond the end of the text.
void WordPattern::Words::find() {
  auto* const match = static_cast<pcre2_match_data*>(match_);
  const int found = pcre2_match(code_of(code_), reinterpret_cast<PCRE2_SPTR>(text_.data()),
                                text_.size(), at_, PCRE2_NO_UTF_CHECK, match, nullptr);
  if (found == PCRE2_ERROR_NOMATCH) {
    begin_ = text_.size();
    end_ = text_.size() + 1;
    return;
  }
  if (found <= 0)
    throw_input(fmt::format("matching the pattern {} is too expensive at byte {} of a text (PCRE2 "
                            "error {})",
                            pattern_.text_.substr(0, 200), at_, found),
                pattern_.where_, "use a simpler pattern or shorter texts");
  begin_ = pcre2_get_ovector_pointer(match)[0];
  end_ = pcre2_get_ovector_pointer(match)[1];
}

}  // namespace concertina
