#include "io/tokenizers/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "core/error.h"
#include "core/text/utf8.h"

namespace concertina {
namespace {

constexpr double kUnknownPenalty = 10.0;

}  // namespace

UnigramPieces::UnigramPieces(const UnigramTable& table)
    : unknown_(table.unknown), byte_fallback_(table.byte_fallback) {
  double least = std::numeric_limits<double>::infinity();
  fallback_.fill(-1);
  for (const auto& [piece, score] : table.pieces) {
    scores_.push_back(score);
    least = std::min(least, score);
  }
  unknown_score_ = least - kUnknownPenalty;
  std::vector<std::int32_t> order(table.pieces.size());
  std::iota(order.begin(), order.end(), 0);
  const auto piece_of = [&](std::int32_t id) -> const std::string& {
    return table.pieces[static_cast<std::size_t>(id)].first;
  };
  std::ranges::stable_sort(order, {}, piece_of);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string name = fmt::format("<0x{:02X}>", byte);
    const auto found = std::ranges::lower_bound(order, name, {}, piece_of);
    if (found != order.end() && piece_of(*found) == name) fallback_[byte] = *found;
  }
  grow(0, order, 0, table);
}

/// Adds the extensions of a node, the common prefix of `depth` bytes of the sorted `pieces`.
void UnigramPieces::grow(std::int32_t node, std::span<const std::int32_t> pieces, std::size_t depth,
                         const UnigramTable& table) {
  const auto name = [&](std::int32_t id) -> const std::string& {
    return table.pieces[static_cast<std::size_t>(id)].first;
  };
  while (!pieces.empty() && name(pieces.front()).size() == depth) {  // the last of equal ones wins
    if (depth > 0) nodes_[static_cast<std::size_t>(node)].piece = pieces.front();
    pieces = pieces.subspan(1);
  }
  std::vector<std::span<const std::int32_t>> parts;
  while (!pieces.empty()) {
    const char byte = name(pieces.front())[depth];
    const auto end =
        std::ranges::find_if(pieces, [&](std::int32_t id) { return name(id)[depth] != byte; });
    parts.push_back(pieces.first(static_cast<std::size_t>(end - pieces.begin())));
    pieces = pieces.subspan(parts.back().size());
  }
  const auto first = static_cast<std::int32_t>(nodes_.size());
  nodes_[static_cast<std::size_t>(node)].first = first;
  nodes_[static_cast<std::size_t>(node)].count = static_cast<std::int32_t>(parts.size());
  for (const auto& part : parts)
    nodes_.push_back({.byte = static_cast<std::uint8_t>(name(part.front())[depth])});
  for (std::size_t i = 0; i < parts.size(); ++i)
    grow(first + static_cast<std::int32_t>(i), parts[i], depth + 1, table);
}

const UnigramPieces::Node* UnigramPieces::extended(const Node& node, char byte) const {
  const auto all = std::span(nodes_).subspan(static_cast<std::size_t>(node.first),
                                             static_cast<std::size_t>(node.count));
  const auto found =
      std::ranges::lower_bound(all, static_cast<std::uint8_t>(byte), {}, &Node::byte);
  return found == all.end() || found->byte != static_cast<std::uint8_t>(byte) ? nullptr : &*found;
}

/// Viterbi's algorithm: best[i] is the best segmentation up to byte i.
void UnigramPieces::find_best(std::string_view word, std::vector<Best>& best) const {
  best.assign(word.size() + 1, {});
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t next = begin;
    next_code(word, next);
    const double here = best[begin].score;
    const auto offer = [&](std::size_t end, double score, std::int32_t piece) {
      if (best[end].begin < 0 || score + here > best[end].score)
        best[end] = {score + here, static_cast<std::int32_t>(begin), piece};
    };
    bool whole_character = false;
    const Node* node = &nodes_[0];
    for (std::size_t end = begin; end < word.size();) {
      node = extended(*node, word[end++]);
      if (node == nullptr) break;
      if (node->piece < 0) continue;
      offer(end, scores_[static_cast<std::size_t>(node->piece)], node->piece);
      whole_character = whole_character || end == next;
    }
    if (!whole_character) {
      if (!unknown_)
        throw_input(
            fmt::format("'{}' is not a piece of this tokenizer", word.substr(begin, next - begin)),
            "the text", "use a tokenizer with an unk_id");
      offer(next, unknown_score_, *unknown_);
    }
    begin = next;
  }
}

void UnigramPieces::append(std::string_view piece, std::int32_t id,
                           std::vector<std::int32_t>& tokens) const {
  const bool bytes =
      unknown_ && id == *unknown_ && byte_fallback_ && std::ranges::all_of(piece, [&](char byte) {
        return fallback_[static_cast<unsigned char>(byte)] >= 0;
      });
  if (!bytes) return tokens.push_back(id);
  for (const char byte : piece) tokens.push_back(fallback_[static_cast<unsigned char>(byte)]);
}

void UnigramPieces::encode(std::string_view word, std::vector<std::int32_t>& tokens) const {
  thread_local std::vector<Best> best;
  thread_local std::vector<std::pair<std::size_t, std::int32_t>> path;  // begin and id, backwards
  find_best(word, best);
  path.clear();
  for (std::size_t end = word.size(); end > 0;) {
    const Best& last = best[end];
    const auto begin = static_cast<std::size_t>(last.begin);
    // Merge consecutive unknown pieces.
    if (!path.empty() && unknown_ && last.piece == *unknown_ && path.back().second == *unknown_)
      path.back().first = begin;
    else
      path.emplace_back(begin, last.piece);
    end = begin;
  }
  for (std::size_t i = path.size(); i-- > 0;) {
    const std::size_t end = i == 0 ? word.size() : path[i - 1].first;
    append(word.substr(path[i].first, end - path[i].first), path[i].second, tokens);
  }
}

}  // namespace concertina
