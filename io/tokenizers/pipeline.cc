#include "io/tokenizers/stages.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "core/error.h"
#include "io/sha256.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina {
namespace {

/// A cache of the tokens of words, since words recur in texts. It is direct-mapped: a word replaces
/// the one in the same hash slot. Not thread-safe.
class WordMemory {
 public:
  /// Appends the tokens of `word` according to `model`.
  void encode(const WordModel& model, std::string_view word, std::vector<std::int32_t>& tokens) {
    Word& place = words_[XXH3_64bits(word.data(), word.size()) % kPlaces];
    if (place.size == word.size() &&
        std::memcmp(place.bytes.data(), word.data(), word.size()) == 0) {
      tokens.insert(tokens.end(), place.tokens.begin(), place.tokens.begin() + place.count);
      return;
    }
    const std::size_t before = tokens.size();
    model.encode(word, tokens);
    const std::size_t count = tokens.size() - before;
    if (word.size() > place.bytes.size() || count > place.tokens.size()) return;
    place.size = static_cast<std::uint8_t>(word.size());
    std::ranges::copy(word, place.bytes.begin());
    std::copy(tokens.end() - static_cast<std::ptrdiff_t>(count), tokens.end(),
              place.tokens.begin());
    place.count = static_cast<std::int32_t>(count);
  }

 private:
  static constexpr std::size_t kPlaces = std::size_t{1} << 16;
  struct Word {
    std::array<char, 23> bytes{};
    std::uint8_t size = 0;  // 0: empty slot
    std::array<std::int32_t, 9> tokens{};
    std::int32_t count = 0;
  };
  std::vector<Word> words_ = std::vector<Word>(kPlaces);
};

/// A pool of caches that no thread is using.
class WordMemories {
 public:
  /// The result returns to the pool on destruction.
  auto lease() {
    const auto give_back = [this](WordMemory* memory) {
      const std::lock_guard lock(mutex_);
      idle_.emplace_back(memory);
    };
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) idle_.push_back(std::make_unique<WordMemory>());
    std::unique_ptr<WordMemory, decltype(give_back)> leased(idle_.back().release(), give_back);
    idle_.pop_back();
    return leased;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordMemory>> idle_;
};

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerStages stages);

  std::int64_t vocabulary() const override { return std::ssize(names_); }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  std::optional<std::int32_t> special(SpecialToken which) const override {
    const auto declared = specials_.find(which);
    return declared == specials_.end() ? stages_.added.special(which) : declared->second;
  }
  std::string name(std::int32_t token) const override {
    return names_[static_cast<std::size_t>(token)];
  }
  const Marks* marks() const override { return stages_.marks ? &*stages_.marks : nullptr; }
  std::string fingerprint() const override { return stages_.fingerprint; }
  std::size_t cut(std::string_view text, std::size_t from) const override;

 private:
  void set(std::int32_t id, const std::string& name) {
    const auto at = static_cast<std::size_t>(id);
    if (names_.size() <= at) names_.resize(at + 1);
    names_[at] = name;
  }

  TokenizerStages stages_;
  CutPlaces cuts_{};
  std::vector<std::string> names_;                                // by id
  std::map<SpecialToken, std::optional<std::int32_t>> specials_;  // specified by files
  mutable WordMemories memories_;
};

PipelineTokenizer::PipelineTokenizer(TokenizerStages stages) : stages_(std::move(stages)) {
  for (const auto& [content, id] : stages_.added.all()) set(id, content);
  for (const auto& [name, id] : stages_.model.names)
    if (stages_.added.content(id) == nullptr) set(id, name);
  stages_.model.names.clear();
  specials_ = ids_of(stages_.declared, *this);
  // Special tokens declared in other files affect where texts end, so they are fingerprinted.
  for (const auto& [role, id] : specials_)
    if (id != stages_.added.special(role))
      stages_.fingerprint = sha256_hex(
          fmt::format("{} {} {}", stages_.fingerprint, static_cast<int>(role), id.value_or(-1)));
  std::vector<PreTokenizer>& steps = stages_.words.steps;
  if (steps.empty()) cuts_ = {.lines = false, .spaces = false};
  for (const Normalizer& step : stages_.normalizers) cuts_ = cuts_ & step.cuts;
  for (const PreTokenizer& step : steps) cuts_ = cuts_ & step.cuts;
  cuts_ = cuts_ & CutPlaces{.lines = !stages_.added.hinders_cuts('\n'),
                            .spaces = !stages_.added.hinders_cuts(' ')};
  if (stages_.model.cuts_at_blanks) steps.push_back(between_blanks());
}

void PipelineTokenizer::encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
  require_utf8(text);
  const auto memory = memories_.lease();
  const std::vector<PreTokenizer>& steps = stages_.words.steps;
  std::vector<UseStretch> uses(steps.size() + 1);
  uses.back() = [&](Stretch word) { memory->encode(stages_.model, word.text, tokens); };
  for (std::size_t i = steps.size(); i-- > 0;)
    uses[i] = [&step = steps[i], &next = uses[i + 1]](Stretch part) { step.split(part, next); };
  const auto found = [&](std::int32_t id) { tokens.push_back(id); };
  const auto plain = [&](std::string_view part, bool first) {
    const auto normalized = [&](std::string_view whole) {
      stages_.added.split(
          whole, /*normalized=*/true,
          [&](std::string_view words, bool begins) {
            uses[0]({words, first && begins});
          },
          found);
    };
    if (stages_.normalizers.empty()) return normalized(part);
    normalized(normalized_by(stages_.normalizers, part));
  };
  stages_.added.split(text, /*normalized=*/false, plain, found);
}

std::string PipelineTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::vector<std::string> names;
  names.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    CONCERTINA_CHECK(token >= 0 && token < vocabulary(), "invalid token {}", token);
    names.push_back(names_[static_cast<std::size_t>(token)]);
  }
  for (const Decoder& decoder : stages_.decoders) decoder(names);
  std::string text;
  for (const std::string& name : names) text += name;
  return text;
}

std::size_t PipelineTokenizer::cut(std::string_view text, std::size_t from) const {
  if (!cuts_.lines && !cuts_.spaces) return text.size();
  const auto place = cuts_.lines ? line_cut : space_cut;
  std::size_t at = place(text, from);
  while (at < text.size() && !stages_.added.may_be_cut(text, at)) at = place(text, at + 1);
  return at;
}

}  // namespace

std::string normalized_by(const std::vector<Normalizer>& normalizers, std::string_view text) {
  std::string result(text);
  for (const Normalizer& step : normalizers) result = step.apply(result);
  return result;
}

std::unique_ptr<Tokenizer> make_pipeline(TokenizerStages stages) {
  return std::make_unique<PipelineTokenizer>(std::move(stages));
}

}  // namespace concertina
