#include "io/datasets/sentences.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"

namespace concertina {

SentenceEncoder::SentenceEncoder(std::shared_ptr<const Tokenizer> tokenizer, bool masks)
    : tokenizer_(or_bytes(std::move(tokenizer))), vocabulary_(tokenizer_->vocabulary()) {
  using Mark = std::optional<std::int32_t>;
  const Mark end = tokenizer_->special(SpecialToken::end);
  const auto mark = [&](SpecialToken which, Mark instead) {
    const Mark own = tokenizer_->special(which);
    if (own || instead) return own ? *own : *instead;
    return static_cast<std::int32_t>(vocabulary_++);
  };
  const Mark begin = tokenizer_->special(SpecialToken::begin);
  const Mark other = end ? Mark(*end == 0 ? 1 : 0) : std::nullopt;
  classify_ = mark(SpecialToken::classify, end ? (begin ? begin : end) : end);
  separator_ = mark(SpecialToken::separate, end);
  mask_ = mark(SpecialToken::mask, masks ? std::nullopt : other);
  padding_ = mark(SpecialToken::padding, other);
}

void truncate_pair(std::vector<std::int32_t>& a, std::vector<std::int32_t>& b, std::size_t room) {
  while (a.size() + b.size() > room) (a.size() > b.size() ? a : b).pop_back();
}

void write_sentences(const SentenceEncoder& encoder, std::span<const std::int32_t> a,
                     std::span<const std::int32_t> b, bool pair, std::int64_t room, View tokens,
                     View types, View length) {
  const auto first = static_cast<std::int64_t>(a.size()) + 2;
  const std::int64_t used = first + (pair ? static_cast<std::int64_t>(b.size()) + 1 : 0);
  CONCERTINA_CHECK(used <= room, "{} tokens in {}", used, room);
  if (!length.empty()) *length.i32() = static_cast<std::int32_t>(used);
  if (!types.empty()) {
    std::fill_n(types.i32(), room, 0);
    std::fill_n(types.i32() + first, used - first, 1);
  }
  if (tokens.empty()) return;
  std::int32_t* out = tokens.i32();
  std::int32_t* const end = out + room;
  *out++ = encoder.classify();
  out = std::copy(a.begin(), a.end(), out);
  *out++ = encoder.separator();
  if (pair) {
    out = std::copy(b.begin(), b.end(), out);
    *out++ = encoder.separator();
  }
  std::fill(out, end, encoder.padding());
}

}  // namespace concertina
