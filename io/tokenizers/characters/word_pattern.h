// The patterns that cut a text into words before a model sees it: regular expressions as
// `tokenizers` has them (those of Oniguruma), run by PCRE2.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

namespace concertina {

class WordPattern {
 public:
  /// `pattern`: as tokenizer.json or a model's code has it. Input error, with `where`: it is no
  /// regular expression, matches nothing at all, or has a part that may mean something else to
  /// PCRE2. `prefix_space`: tokenizer.json's add_prefix_space.
  WordPattern(std::string_view pattern, const std::string& where, bool prefix_space = false);
  static std::string_view gpt2();
  static std::string_view llama3();

  /// Walks through the matches in a text and what is between them, which joined are the text. One
  /// per thread and text.
  class Words {
   public:
    /// `text` is UTF-8.
    Words(const WordPattern& pattern, std::string_view text);
    /// False at the end.
    bool next(std::string_view& word) {
      bool matches = false;
      return next(word, matches);
    }
    /// As above, and says whether the word is a match. Input error: the pattern asks for too much
    /// work.
    bool next(std::string_view& word, bool& matches);

   private:
    void find();

    const WordPattern& pattern_;
    const void* code_;
    void* match_;  // of this thread
    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t begin_ = 0, end_ = 0;  // of the next match; not looked for where end_ <= at_
  };

  /// Calls `use` with each word of a text in UTF-8. With a prefix space they are those of the text
  /// after a space, unless it begins with one or is empty.
  template <class Use>
  void for_each_word(std::string_view text, const Use& use) const {
    std::string spaced;
    if (prefix_space_ && !text.empty() && text[0] != ' ') text = spaced = fmt::format(" {}", text);
    Words words(*this, text);
    for (std::string_view word; words.next(word);) use(word);
  }

  const std::string& text() const { return text_; }
  bool prefix_space() const { return prefix_space_; }
  /// Whether it is one of those that never join, nor look at, what is beyond a single line break or
  /// space (of unicode.h's line_cut() and space_cut()).
  bool keeps_lines() const { return keeps_lines_; }

 private:
  struct Free {
    void operator()(void* code) const;
  };

  std::string text_, where_;
  bool prefix_space_;
  bool keeps_lines_ = false, plain_words_ = false;
  std::unique_ptr<void, Free> code_, newer_code_;  // the second knows newer characters
};

}  // namespace concertina
