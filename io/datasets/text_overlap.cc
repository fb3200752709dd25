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
constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;       // of the polynomial, modulo 2^64
constexpr int kFilterBits = 25;

std::uint64_t digit_of(std::int32_t token) {
  return (static_cast<std::uint64_t>(token) + 1) * 0xBF58476D1CE4E5B9;
}

std::uint64_t hash_of(std::span<const std::int32_t> block) {
  std::uint64_t hash = 0;
  for (const std::int32_t token : block) hash = hash * kBase + digit_of(token);
  return hash;
}

/// The hashes of blocks, and which of them have been seen elsewhere.
class BlockSet {
 public:
  BlockSet(const TokenSequence& tokens, std::uint64_t begin, std::uint64_t size,
           std::uint64_t length)
      : length_(length), filter_(std::size_t{1} << (kFilterBits - 6)) {
    const std::uint64_t blocks = size / length, every = blocks / kMostBlocks + 1;
    std::vector<std::int32_t> block(length);
    for (std::uint64_t b = 0; b < blocks; b += every) {
      tokens.read(begin + b * length, block);
      // Runs of one token, such as spaces, are no sign of a copy.
      if (std::ranges::count(block, block[0]) < std::ssize(block))
        hashes_.push_back(hash_of(block));
    }
    std::ranges::sort(hashes_);
    for (const std::uint64_t hash : hashes_) filter_[slot(hash) / 64] |= bit(hash);
    seen_ = std::vector<std::atomic<bool>>(hashes_.size());
    for (std::uint64_t i = 1; i < length; ++i) power_ *= kBase;
  }

  std::uint64_t size() const { return hashes_.size(); }
  /// Looks at each block of `tokens`, at every place.
  void look_at(std::span<const std::int32_t> tokens) {
    if (tokens.size() < length_) return;
    std::uint64_t hash = hash_of(tokens.first(length_));
    for (std::size_t end = length_;; ++end) {
      if ((filter_[slot(hash) / 64] & bit(hash)) != 0) note(hash);
      if (end == tokens.size()) return;
      hash = (hash - digit_of(tokens[end - length_]) * power_) * kBase + digit_of(tokens[end]);
    }
  }
  std::uint64_t found() const {
    return static_cast<std::uint64_t>(std::count(seen_.begin(), seen_.end(), true));
  }

 private:
  static std::size_t slot(std::uint64_t hash) { return hash >> (64 - kFilterBits); }
  static std::uint64_t bit(std::uint64_t hash) { return std::uint64_t{1} << slot(hash) % 64; }
  void note(std::uint64_t hash) {
    for (auto at = std::ranges::lower_bound(hashes_, hash); at != hashes_.end() && *at == hash;
         ++at)
      seen_[static_cast<std::size_t>(at - hashes_.begin())].store(true, std::memory_order_relaxed);
  }

  std::uint64_t length_, power_ = 1;
  std::vector<std::uint64_t> filter_, hashes_;
  std::vector<std::atomic<bool>> seen_;
};

void compare_part(const WindowedTokens& parts, std::size_t part, std::uint64_t begin,
                  const std::function<void()>& progress) {
  const std::uint64_t size = parts.sizes[part], train = parts.sizes[0];
  const std::uint64_t length = std::min<std::uint64_t>(parts.word == "byte" ? 128 : 32, size);
  if (length < kLeastTokens) return;
  BlockSet blocks(*parts.tokens, begin, size, length);
  for_all((train + kPiece - 1) / kPiece, progress, [&](std::size_t piece) {
    const std::uint64_t from = piece * kPiece;
    std::vector<std::int32_t> tokens(std::min(kPiece + length - 1, train - from));
    parts.tokens->read(from, tokens);
    blocks.look_at(tokens);
  });
  if (blocks.found() == 0) return;
  const double share = static_cast<double>(blocks.found()) / static_cast<double>(blocks.size());
  const std::string what = fmt::format(
      "{:.1f}% of the {} text ({} of {} blocks of {} {}s that were compared) is trained "
      "on too",
      100 * share, kSplitNames[part], blocks.found(), blocks.size(), length, parts.word);
  if (parts.own_files[part] && share > parts.most_overlap)
    throw_input(
        what + ": figures on it say little", fmt::format("data.{}_files", kSplitNames[part]),
        fmt::format("files without what is trained on, or data.most_overlap = {} to allow it",
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
