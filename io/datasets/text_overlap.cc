#include "io/datasets/text_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "io/datasets/content_hash.h"
#include "io/for_all.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 20, kLeastLength = 16;
constexpr std::uint64_t kPiece = std::uint64_t{1} << 18;  // tokens per work item of a thread
constexpr std::uint64_t kJoin = 1024;                     // overlap with the next piece
constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;       // base of a polynomial hash modulo 2^64
constexpr int kFilterBits = 25;

/// Returns what is compared for `size` tokens from `begin` on: the bytes of their text in lower
/// case without white space, or the tokens if the tokenizer is unknown.
std::vector<std::int32_t> compared(const WindowedTokens& parts, std::uint64_t begin,
                                   std::uint64_t size) {
  std::vector<std::int32_t> tokens(size);
  parts.tokens->read(begin, tokens);
  if (parts.tokenizer == nullptr) return tokens;
  for (const SpecialToken which : {SpecialToken::unknown, SpecialToken::begin, SpecialToken::end,
                                   SpecialToken::classify, SpecialToken::separate})
    if (const auto mark = parts.tokenizer->special(which)) std::erase(tokens, *mark);
  std::string folded;
  append_folded(parts.tokenizer->decode(tokens), folded);
  std::erase(folded, ' ');
  return {folded.begin(), folded.end()};
}

std::uint64_t digit_of(std::int32_t value) {
  return (static_cast<std::uint64_t>(value) + 1) * 0xBF58476D1CE4E5B9;
}

std::uint64_t hash_of(std::span<const std::int32_t> block) {
  std::uint64_t hash = 0;
  for (const std::int32_t value : block) hash = hash * kBase + digit_of(value);
  return hash;
}

/// Returns the sorted hashes of blocks of tokens [begin, begin + size). Blocks of one repeated
/// value, such as zeros, are not evidence of a copy.
std::vector<std::uint64_t> block_hashes(const WindowedTokens& parts, std::uint64_t begin,
                                        std::uint64_t size, std::uint64_t length,
                                        const std::function<void()>& progress) {
  const std::uint64_t every = size / length / kMostBlocks + 1;
  std::vector<std::vector<std::uint64_t>> found((size + kPiece - 1) / kPiece);
  for_all(found.size(), progress, [&](std::size_t piece) {
    const auto part =
        compared(parts, begin + piece * kPiece, std::min(kPiece, size - piece * kPiece));
    for (std::uint64_t at = 0; at + length <= part.size(); at += every * length)
      if (const auto block = std::span(part).subspan(at, length);
          std::ranges::count(block, block[0]) < std::ssize(block))
        found[piece].push_back(hash_of(block));
  });
  std::vector<std::uint64_t> hashes;
  for (const auto& some : found) hashes.insert(hashes.end(), some.begin(), some.end());
  std::ranges::sort(hashes);
  return hashes;
}

/// Returns how many of `hashes` match a block at any position in the training data.
std::uint64_t count_found(const WindowedTokens& parts, std::uint64_t length,
                          const std::vector<std::uint64_t>& hashes,
                          const std::function<void()>& progress) {
  const auto slot = [](std::uint64_t hash) { return hash >> (64 - kFilterBits); };
  std::vector<bool> filter(std::size_t{1} << kFilterBits);
  for (const std::uint64_t hash : hashes) filter[slot(hash)] = true;
  std::vector<std::atomic<bool>> seen(hashes.size());
  const std::uint64_t size = parts.sizes[0];
  std::uint64_t first = 1;  // weight of a block's first value
  for (std::uint64_t i = 1; i < length; ++i) first *= kBase;
  for_all((size + kPiece - 1) / kPiece, progress, [&](std::size_t piece) {
    const auto part =
        compared(parts, piece * kPiece, std::min(kPiece + kJoin, size - piece * kPiece));
    if (part.size() < length) return;
    std::uint64_t hash = hash_of(std::span(part).first(length));
    for (std::size_t end = length;; ++end) {
      if (filter[slot(hash)])
        for (auto at = std::ranges::lower_bound(hashes, hash); at != hashes.end() && *at == hash;)
          seen[static_cast<std::size_t>(at++ - hashes.begin())] = true;
      if (end == part.size()) return;
      hash = (hash - digit_of(part[end - length]) * first) * kBase + digit_of(part[end]);
    }
  });
  return static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), true));
}

void compare_part(const WindowedTokens& parts, std::size_t part, std::uint64_t begin,
                  const std::function<void()>& progress) {
  const bool is_text = parts.tokenizer != nullptr;
  std::uint64_t length = is_text ? 128 : 32;
  if (const std::uint64_t size = parts.sizes[part]; size <= kPiece)
    length = std::min(length, compared(parts, begin, size).size());
  if (length < kLeastLength) return;
  const auto hashes = block_hashes(parts, begin, parts.sizes[part], length, progress);
  const auto found = count_found(parts, length, hashes, progress);
  if (found == 0) return;
  const double share = static_cast<double>(found) / static_cast<double>(hashes.size());
  const std::string what = fmt::format(
      "{:.1f}% of the {} text ({} of {} compared blocks of {} {}) is also in the training data",
      100 * share, kSplitNames[part], found, hashes.size(), length, is_text ? "bytes" : "tokens");
  if (parts.own_files[part] && share > parts.most_overlap)
    throw_input(what, fmt::format("data.{}_files", kSplitNames[part]),
                fmt::format("use files without training data, or data.most_overlap = {}",
                            std::ceil(share * 100) / 100));
  log::warn("{}", what);
}

}  // namespace

void verify_tokens(const WindowedTokens& parts, const std::function<void()>& progress) {
  parts.tokens->verify(progress);
  for (std::size_t part = 1; part < parts.sizes.size(); ++part)
    compare_part(parts, part, parts.sizes[0] + (part == 2 ? parts.sizes[1] : 0), progress);
}

}  // namespace concertina
