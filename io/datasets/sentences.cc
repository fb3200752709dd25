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
  if (tokenizer_->marks() != nullptr) {
    marks_ = *tokenizer_->marks();
  } else {
    const Marks::Part first{.token = classify_}, a{.text = 0}, b{.text = 1, .type = 1};
    Marks::Part last{.token = separator_};
    marks_.single = {first, a, last};
    marks_.pair = {first, a, last, b};
    last.type = 1;
    marks_.pair.push_back(last);
  }
  // Many files also use the end-of-text token as padding.
  const bool ends = std::ranges::any_of(marks_.pair, [&](const Marks::Part& part) {
    return part.text < 0 && part.token == padding_;
  });
  if (ends && other) padding_ = *other;
}

std::int64_t SentenceEncoder::marks_before(bool pair) const {
  std::int64_t count = 0;
  for (const Marks::Part& part : parts(pair)) {
    if (part.text == (pair ? 1 : 0)) break;
    if (part.text < 0) ++count;
  }
  return count;
}

void truncate_pair(std::vector<std::int32_t>& a, std::vector<std::int32_t>& b, std::size_t room) {
  while (a.size() + b.size() > room) (a.size() > b.size() ? a : b).pop_back();
}

void write_sentences(const SentenceEncoder& encoder, std::span<const std::int32_t> a,
                     std::span<const std::int32_t> b, bool pair, std::int64_t room, View tokens,
                     View types, View length) {
  std::int64_t used = encoder.marks(pair) + std::ssize(a) + (pair ? std::ssize(b) : 0);
  CONCERTINA_CHECK(used <= room, "{} tokens do not fit into {}", used, room);
  if (!length.empty()) *length.i32() = static_cast<std::int32_t>(used);
  if (!types.empty()) std::fill_n(types.i32(), room, 0);
  if (!tokens.empty()) std::fill_n(tokens.i32() + used, room - used, encoder.padding());
  used = 0;
  for (const Marks::Part& part : encoder.parts(pair)) {
    const auto written = part.text < 0 ? std::span(&part.token, 1) : part.text == 0 ? a : b;
    if (!types.empty()) std::fill_n(types.i32() + used, std::ssize(written), part.type);
    if (!tokens.empty()) std::ranges::copy(written, tokens.i32() + used);
    used += std::ssize(written);
  }
}

}  // namespace concertina
