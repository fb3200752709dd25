#include "io/datasets/masked_tokens.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/rng.h"
#include "io/datasets/sentences.h"

namespace concertina {
namespace {

class MaskedTokens final : public DatasetAround {
 public:
  MaskedTokens(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Tokenizer> tokenizer);

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override {
    return inner().vocabulary() == 0 ? 0 : std::max(marks_.vocabulary(), inner().vocabulary());
  }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override;
  void write(const SampleAt& at, std::span<const View> views) const override;
  bool repeats() const override { return false; }
  /// Row labels are not learned.
  std::span<const std::string> classes() const override { return {}; }
  /// Only part of the text is a target.
  SplitContent content(Split split, const std::function<void()>& progress) const override {
    return {.sha256 = inner().content(split, progress).sha256};
  }

 private:
  /// Collects the positions of tokens that may be chosen, and returns how many will be chosen.
  std::int64_t find_candidates(const SampleAt& at, std::span<const std::int32_t> tokens,
                               std::vector<std::int32_t>& candidates) const;
  std::int32_t replacement(std::int32_t token, std::span<const std::uint32_t, 4> words) const;
  void read_tokens(const SampleAt& at, std::span<std::int32_t> tokens, std::int32_t& length) const;

  /// Writes types and length, the two fields before the targets, for a dataset that lacks them.
  static void write_made(std::span<const View> views, std::int32_t length);

  SentenceEncoder marks_;
  int tokens_ = -1, lengths_ = -1, targets_ = -1;  // fields of the inner dataset
  std::vector<Field> fields_;
  std::vector<int> from_;  // field of the inner dataset for each of fields_; -1: made here
  std::int64_t room_ = 0;
  // If samples have lengths: number of targets before each sample, per split.
  std::array<std::vector<std::int64_t>, 3> before_;
};

MaskedTokens::MaskedTokens(std::shared_ptr<const Dataset> dataset,
                           std::shared_ptr<const Tokenizer> tokenizer)
    : DatasetAround(std::move(dataset)),
      marks_(std::move(tokenizer), true),
      tokens_(field_index(inner(), "tokens")),
      lengths_(field_index(inner(), "lengths")),
      targets_(field_index(inner(), "targets")) {
  if (tokens_ < 0)
    throw_input("a masked language model needs tokens, but the data has none", "data.format",
                "use a text format");
  const std::span<const Field> given = inner().fields();
  room_ = given[static_cast<std::size_t>(tokens_)].elements();
  for (std::size_t f = 0; f < given.size(); ++f)
    if (std::cmp_not_equal(f, targets_)) {
      fields_.push_back(given[f]);
      from_.push_back(static_cast<int>(f));
    }
  // A window of text is one sentence without padding, except at the end of a held-out split.
  if (lengths_ < 0)
    for (const Field& field : {types_field(room_), lengths_field()}) {
      fields_.push_back(field);
      from_.push_back(-1);
    }
  fields_.push_back(targets_field(room_, masked_count(room_)));
  from_.push_back(-1);
  if (lengths_ < 0) return;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(room_)), candidates;
  std::int32_t length = 0;
  for (const Split split : kAllSplits) {
    std::vector<std::int64_t>& before = before_[static_cast<std::size_t>(split)];
    before.push_back(0);
    for (std::uint64_t sample = 0; sample < inner().samples(split); ++sample) {
      const SampleAt at{.split = split, .sample = sample};
      read_tokens(at, tokens, length);
      before.push_back(before.back() +
                       find_candidates(at,
                                       std::span(tokens).first(static_cast<std::size_t>(length)),
                                       candidates));
    }
  }
}

void MaskedTokens::read_tokens(const SampleAt& at, std::span<std::int32_t> tokens,
                               std::int32_t& length) const {
  std::vector<View> views(inner().fields().size());
  views[static_cast<std::size_t>(tokens_)] = {tokens.data(), tokens.size(), DType::i32};
  if (lengths_ >= 0) views[static_cast<std::size_t>(lengths_)] = {&length, 1, DType::i32};
  inner().write(at, views);
}

void MaskedTokens::write_made(std::span<const View> views, std::int32_t length) {
  const View types = views[views.size() - 3], lengths = views[views.size() - 2];
  if (!types.empty()) std::fill_n(types.i32(), types.count, 0);
  if (!lengths.empty()) *lengths.i32() = length;
}

std::int64_t MaskedTokens::targets_before(Split split, std::uint64_t sample) const {
  if (lengths_ >= 0) return before_[static_cast<std::size_t>(split)][sample];
  // Windows are full, except for the last one of a held-out split.
  const std::int64_t tokens = inner().targets_before(split, sample), rest = tokens % room_;
  return tokens / room_ * masked_count(room_) + (rest > 0 ? masked_count(rest) : 0);
}

std::int64_t MaskedTokens::find_candidates(const SampleAt& at, std::span<const std::int32_t> tokens,
                                           std::vector<std::int32_t>& candidates) const {
  candidates.clear();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (!marks_.is_mark(tokens[i])) candidates.push_back(static_cast<std::int32_t>(i));
  if (lengths_ >= 0) return candidates.empty() ? 0 : masked_count(std::ssize(candidates));
  const std::int64_t count = masked_count(std::ssize(tokens));
  if (std::ssize(candidates) < count)
    throw_input(
        fmt::format("only {} of {} tokens can be masked (the others are marks); at least {} are "
                    "needed",
                    candidates.size(), tokens.size(), count),
        fmt::format("{} sample {}", kSplitNames[static_cast<std::size_t>(at.split)], at.sample),
        "use a text with fewer marks, or a longer model.context");
  return count;
}

std::int32_t MaskedTokens::replacement(std::int32_t token,
                                       std::span<const std::uint32_t, 4> words) const {
  constexpr std::uint32_t kTenth = 0x1999999a;  // of 2^32
  if (words[1] < 8 * std::uint64_t{kTenth}) return marks_.mask();
  if (words[1] >= 9 * std::uint64_t{kTenth}) return token;
  const auto vocabulary = static_cast<std::uint32_t>(marks_.vocabulary());
  std::uint32_t other = words[2] % vocabulary;
  while (marks_.is_mark(static_cast<std::int32_t>(other))) other = (other + 1) % vocabulary;
  return static_cast<std::int32_t>(other);
}

void MaskedTokens::write(const SampleAt& at, std::span<const View> views) const {
  std::vector<View> wants(inner().fields().size());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(room_)), targets;
  std::int32_t length = static_cast<std::int32_t>(room_);
  for (std::size_t f = 0; f < fields_.size(); ++f)
    if (from_[f] >= 0) wants[static_cast<std::size_t>(from_[f])] = views[f];
  const View wanted = wants[static_cast<std::size_t>(tokens_)];
  wants[static_cast<std::size_t>(tokens_)] = {tokens.data(), tokens.size(), DType::i32};
  const View given_length = lengths_ < 0 ? View{} : wants[static_cast<std::size_t>(lengths_)];
  if (lengths_ >= 0) wants[static_cast<std::size_t>(lengths_)] = {&length, 1, DType::i32};
  SampleAt whole = at;
  whole.most = SampleAt{}.most;
  inner().write(whole, wants);
  if (!given_length.empty()) *given_length.i32() = length;
  if (lengths_ < 0 && at.split != Split::train)
    length = static_cast<std::int32_t>(inner().targets_before(at.split, at.sample + 1) -
                                       inner().targets_before(at.split, at.sample));
  if (lengths_ < 0) write_made(views, length);
  std::vector<std::int32_t> places;
  const std::int64_t count =
      find_candidates(at, std::span(tokens).first(static_cast<std::size_t>(length)), places);
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const Rng rng(at.seed, Purpose::mask);
  targets.assign(tokens.size(), kIgnored);
  for (std::int64_t i = 0; i < count; ++i) {  // partial Fisher-Yates shuffle
    const auto words = rng.words(low(at.epoch), low(at.sample), low(at.sample >> 32), low(i));
    const auto left = static_cast<std::uint64_t>(std::ssize(places) - i);
    std::swap(places[i], places[i + static_cast<std::int64_t>(words[0] % left)]);
    const auto place = static_cast<std::size_t>(places[i]);
    targets[place] = tokens[place];
    tokens[place] = replacement(tokens[place], words);
  }
  std::int64_t kept = 0;
  for (std::int32_t& target : targets)
    if (target != kIgnored && kept++ >= at.most) target = kIgnored;
  if (!wanted.empty()) std::ranges::copy(tokens, wanted.i32());
  if (!views.back().empty()) std::ranges::copy(targets, views.back().i32());
}

}  // namespace

std::shared_ptr<const Dataset> masked_tokens(std::shared_ptr<const Dataset> dataset,
                                             std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_shared<const MaskedTokens>(std::move(dataset), std::move(tokenizer));
}

}  // namespace concertina
