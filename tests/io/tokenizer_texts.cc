// tokenizer_texts TOKENIZER: for each text of stdin (separated by zero bytes), prints the ids of
// its tokens, a line break, the decoded text and a zero byte. For
// tests/golden/compare_tokenizers.py.
#include <fmt/format.h>

#include <iostream>
#include <iterator>
#include <string>

#include "core/error.h"
#include "core/log.h"
#include "io/tokenizers/tokenizer.h"

int main(int count, char** arguments) try {
  using namespace concertina;
  if (count != 2) {
    fmt::print(stderr, "usage: tokenizer_texts TOKENIZER\n");
    return 2;
  }
  log::init(0, 1, "warn");
  const auto tokenizer = make_tokenizer(arguments[1], "TOKENIZER");
  const std::string all{std::istreambuf_iterator<char>(std::cin), {}};
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    const auto tokens = tokenizer->tokens(std::string_view(all).substr(begin, end - begin));
    std::cout << fmt::format("{}\n{}", fmt::join(tokens, " "), tokenizer->decode(tokens)) << '\0';
    begin = end + 1;
  }
} catch (const concertina::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
