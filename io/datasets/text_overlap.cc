#include "io/datasets/text_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "io/for_all.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 20, kLeastTokens = 16;
constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;  // tokens that one thread looks at
constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;       // of a polynomial hash, modulo 2^64
constexpr int kFilterBits = 25;

std::uint64_t digit_of(std::int32_t token) {
  return (static_cast<std::uint64_t>(token) + 1) * 0xBF58476D1CE4E5B9;
}

std::uint64_t hash_of(std::span<const std::int32_t> block) {
  std::uint64_t hash = 0;
  for (const std::int32_t token : block) hash = hash * kBase + digit_of(token);
  return hash;
}

/// The hashes of blocks of tokens [begin, begin + size), ascending. Runs of one token, such as
/// spaces, are no sign of a copy.
std::vector<std::uint64_t> block_hashes(const TokenSequence& tokens, std::uint64_t begin,
                                        std::uint64_t size, std::uint64_t length) {
  const std::uint64_t blocks = size / length, every = blocks / kMostBlocks + 1;
  std::vector<std::uint64_t> hashes;
  std::vector<std::int32_t> block(length);
  for (std::uint64_t b = 0; b < blocks; b += every) {
    tokens.read(begin + b * length, block);
    if (std::ranges::count(block, block[0]) < std::ssize(block)) hashes.push_back(hash_of(block));
  }
  std::ranges::sort(hashes);
  return hashes;
}

/// How many of `hashes` are those of a block at any place of the first `size` tokens.
std::uint64_t count_found(const TokenSequence& tokens, std::uint64_t size, std::uint64_t length,
                          const std::vector<std::uint64_t>& hashes,
                          const std::function<void()>& progress) {
  const auto slot = [](std::uint64_t hash) { return hash >> (64 - kFilterBits); };
  std::vector<bool> filter(std::size_t{1} << kFilterBits);
  for (const std::uint64_t hash : hashes) filter[slot(hash)] = true;
  std::vector<std::atomic<bool>> seen(hashes.size());
  std::uint64_t first = 1;  // the weight of a block's first token
  for (std::uint64_t i = 1; i < length; ++i) first *= kBase;
  for_all((size + kPiece - 1) / kPiece, progress, [&](std::size_t piece) {
    std::vector<std::int32_t> part(std::min(kPiece + length - 1, size - piece * kPiece));
    if (part.size() < length) return;
    tokens.read(piece * kPiece, part);
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
  const std::uint64_t length =
      std::min<std::uint64_t>(parts.word == "byte" ? 128 : 32, parts.sizes[part]);
  if (length < kLeastTokens) return;
  const auto hashes = block_hashes(*parts.tokens, begin, parts.sizes[part], length);
  const auto found = count_found(*parts.tokens, parts.sizes[0], length, hashes, progress);
  if (found == 0) return;
  const double share = static_cast<double>(found) / static_cast<double>(hashes.size());
  const std::string what = fmt::format(
      "{:.1f}% of the {} text ({} of {} blocks of {} {}s that were compared) is trained on too",
      100 * share, kSplitNames[part], found, hashes.size(), length, parts.word);
  if (parts.own_files[part] && share > parts.most_overlap)
    throw_input(what, fmt::format("data.{}_files", kSplitNames[part]),
                fmt::format("files without what is trained on, or data.most_overlap = {}",
                            std::ceil(share * 100) / 100));
  log::warn("{}", what);
}

}  // namespace

void verify_tokens(const WindowedTokens& parts, const std::function<void()>& progress) {
  parts.tokens->verify(progress);
  if (parts.splits != nullptr) return;
  for (std::size_t part = 1; part < parts.sizes.size(); ++part)
    compare_part(parts, part, parts.sizes[0] + (part == 2 ? parts.sizes[1] : 0), progress);
}

}  // namespace concertina
