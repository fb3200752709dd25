// tokenizer_bench TOKENIZER FILE [ROUNDS]: MB (10^6 bytes) of a text that one core encodes in a
// second, the median of rounds; the first round also fills the memory of words, and is shown apart.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <vector>

#include "core/error.h"
#include "io/file.h"
#include "io/tokenizers/tokenizer.h"

int main(int count, char** arguments) try {
  using namespace concertina;
  if (count < 3) {
    fmt::print(stderr, "usage: tokenizer_bench TOKENIZER FILE [ROUNDS]\n");
    return 2;
  }
  const auto tokenizer = make_tokenizer(arguments[1], "TOKENIZER");
  const std::string text = read_file(arguments[2], std::uint64_t{1} << 32);
  std::vector<double> rates;
  std::size_t tokens = 0;
  const int rounds = count > 3 ? std::max(2, std::atoi(arguments[3])) : 6;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::int32_t> out;
    out.reserve(text.size() / 2);
    const auto start = std::chrono::steady_clock::now();
    tokenizer->encode(text, out);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(text.size()) / seconds.count() * 1e-6);
    tokens = out.size();
  }
  const double first = rates[0];
  const std::span rest(rates.begin() + 1, rates.end());
  std::ranges::sort(rest);
  fmt::print(
      "{{\"bytes\": {}, \"tokens\": {}, \"mb_per_s\": {:.1f}, \"first_mb_per_s\": {:.1f}}}\n",
      text.size(), tokens, rest[rest.size() / 2], first);
} catch (const concertina::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
