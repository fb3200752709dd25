// Patterns that split a text into words before a model processes it: regular expressions in the
// syntax of `tokenizers` (Oniguruma), executed by PCRE2.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

namespace concertina {

class WordPattern {
 public:
  /// `pattern` is in the syntax of tokenizer.json. Throws Error{bad_input} with `where` if it is
  /// invalid, matches the empty string, or may be interpreted differently by PCRE2. `prefix_space`
  /// is add_prefix_space in tokenizer.json.
  WordPattern(std::string_view pattern, const std::string& where, bool prefix_space = false);
  static std::string_view gpt2();
  static std::string_view llama3();

  /// Iterates over the matches in a text and the parts between them, which together make up the
  /// text. Use one object per thread and text.
  class Words {
   public:
    /// `text` must be UTF-8.
    Words(const WordPattern& pattern, std::string_view text);
    /// Returns false at the end.
    bool next(std::string_view& word) {
      bool matches = false;
      return next(word, matches);
    }
    /// Also returns whether the word is a match. Throws Error{bad_input} if matching exceeds
    /// PCRE2's limits.
    bool next(std::string_view& word, bool& matches);

   private:
    void find();

    const WordPattern& pattern_;
    const void* code_;
    void* match_;  // of this thread
    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t begin_ = 0, end_ = 0;  // next match; not yet searched for if end_ <= at_
  };

  /// Calls `use` with each word of a UTF-8 text. With a prefix space, a space is added to the text
  /// first unless it begins with one or is empty.
  template <class Use>
  void for_each_word(std::string_view text, const Use& use) const {
    std::string spaced;
    if (prefix_space_ && !text.empty() && text[0] != ' ') text = spaced = fmt::format(" {}", text);
    Words words(*this, text);
    for (std::string_view word; words.next(word);) use(word);
  }

  const std::string& text() const { return text_; }
  bool prefix_space() const { return prefix_space_; }
  /// Whether this is a known pattern that never joins or examines text across a single line break
  /// or space (line_cut() and space_cut() in unicode.h).
  bool keeps_lines() const { return keeps_lines_; }

 private:
  struct Free {
    void operator()(void* code) const;
  };

  std::string text_, where_;
  bool prefix_space_;
  bool keeps_lines_ = false, plain_words_ = false;
  std::unique_ptr<void, Free> code_, newer_code_;  // the second supports newer characters
};

}  // namespace concertina
