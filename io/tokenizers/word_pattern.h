// The patterns that cut a text into words before byte pairs are merged, by PCRE2.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace concertina {

class WordPattern {
 public:
  /// `pattern`: as tokenizer.json or a model's code has it: those of GPT-2 and of Llama 3 are
  /// known. Input error, with `where`: any other, since one that means almost the same gives
  /// almost the same tokens. `prefix_space`: tokenizer.json's add_prefix_space.
  WordPattern(std::string_view pattern, const std::string& where, bool prefix_space = false);
  static std::string_view gpt2();
  static std::string_view llama3();

  /// Walks through the words of a text, which joined are the text. One per thread and text.
  class Words {
   public:
    /// `text` is UTF-8.
    Words(const WordPattern& pattern, std::string_view text);
    ~Words();
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;
    /// False at the end.
    bool next(std::string_view& word);

   private:
    std::size_t matched_end();

    const WordPattern& pattern_;
    std::string_view text_;
    std::size_t at_ = 0;
    void* match_;
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

 private:
  struct Free {
    void operator()(void* code) const;
  };
  std::string text_;
  bool prefix_space_;
  std::unique_ptr<void, Free> code_;
};

}  // namespace concertina
