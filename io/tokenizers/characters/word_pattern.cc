#include "io/tokenizers/characters/word_pattern.h"

#include <algorithm>

#include "core/error.h"
#include "io/tokenizers/characters/library_characters.h"
#include "io/tokenizers/characters/pattern_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace concertina {
namespace {

/// A pattern of which more is known than what it matches.
struct KnownPattern {
  std::string_view pattern;
  bool plain_words;  // letters of ASCII, maybe after a space, are a word where ASCII follows
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

/// `everywhere`: it has a match at each place.
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
    throw_input(fmt::format("the pattern {} {}", pattern.substr(0, 200),
                            empty != 0 ? "matches nothing at all" : "is no regular expression"),
                where, "one as published models have it");
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it, pcre2_match() is used
  return code;
}

bool is_ascii_letter(char c) {
  return static_cast<unsigned>((c | 0x20) - 'a') < 26;
}

/// The end of a word of small and capital letters, maybe after one space, that begins at `at`; 0 if
/// none does or a character beyond ASCII follows.
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
  CONCERTINA_CHECK(match != nullptr, "no memory for a match");
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

/// The first match from at_ on, or one after the end of the text.
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
    throw_input(fmt::format("the pattern {} asks for too much work at byte {} of a text (PCRE2's "
                            "error {})",
                            pattern_.text_.substr(0, 200), at_, found),
                pattern_.where_, "a simpler pattern, or shorter texts");
  begin_ = pcre2_get_ovector_pointer(match)[0];
  end_ = pcre2_get_ovector_pointer(match)[1];
}

}  // namespace concertina
