#include "io/tokenizers/stages.h"

#include <memory>

#include "core/error.h"
#include "core/registry.h"
#include "core/text/utf8.h"
#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/characters/json_rules.h"
#include "io/tokenizers/characters/library_characters.h"
#include "io/tokenizers/characters/pattern_syntax.h"
#include "io/tokenizers/characters/word_pattern.h"

namespace concertina {
namespace {

using PreTokenizerJson = nlohmann::json;
using MakePreTokenizer = PreTokenizer (*)(const PreTokenizerJson& step, const std::string& where);

constexpr CutPlaces kBeforeSpaces{.lines = false, .spaces = true};
constexpr CutPlaces kNoPlaces{.lines = false, .spaces = false};

/// How matches of a step are combined with the parts between them.
enum class Behavior : std::uint8_t { removed, isolated, with_previous, with_next, contiguous };
constexpr Entry<Behavior> kBehaviors[] = {{"Removed", Behavior::removed},
                                          {"Isolated", Behavior::isolated},
                                          {"MergedWithPrevious", Behavior::with_previous},
                                          {"MergedWithNext", Behavior::with_next},
                                          {"Contiguous", Behavior::contiguous}};

/// Combines matches and the parts between them, passed from left to right, according to a behavior.
class PartJoiner {
 public:
  PartJoiner(Behavior behavior, Stretch stretch, const UseStretch& use)
      : behavior_(behavior), stretch_(stretch), use_(use) {}

  void add(std::string_view part, bool matches) {
    if (open_.empty() || !joins(matches)) {
      flush();
      open_ = part;
      alone_ = true;
    } else {
      open_ = {open_.data(), open_.size() + part.size()};
      alone_ = false;
    }
    matches_ = matches;
  }
  void flush() {
    if (!open_.empty() && !(behavior_ == Behavior::removed && matches_))
      use_({open_, stretch_.first && open_.data() == stretch_.text.data()});
    open_ = {};
  }

 private:
  bool joins(bool matches) const {
    switch (behavior_) {
      case Behavior::with_previous:
        return matches && !matches_;
      case Behavior::with_next:
        return !matches && matches_ && alone_;
      case Behavior::contiguous:
        return matches == matches_;
      default:
        return false;
    }
  }

  Behavior behavior_;
  Stretch stretch_;
  const UseStretch& use_;
  std::string_view open_;
  bool matches_ = false;  // whether the last open part is a match
  bool alone_ = false;    // whether there is only one open part
};

/// Splits by characters: each one for which `matches` is true is a match.
template <class Matches>
PreTokenizer by_character(Behavior behavior, Matches matches) {
  return {[=](Stretch stretch, const UseStretch& use) {
    const std::string_view text = stretch.text;
    PartJoiner parts(behavior, stretch, use);
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t here = at;
      if (!matches(next_code(text, at).value_or(0xFFFD))) continue;
      if (here > begin) parts.add(text.substr(begin, here - begin), false);
      parts.add(text.substr(here, at - here), true);
      begin = at;
    }
    if (begin < text.size()) parts.add(text.substr(begin), false);
    parts.flush();
  }};
}

Behavior behavior_of(const PreTokenizerJson& step, const std::string& where) {
  return lookup<Behavior>(kBehaviors, text_of(step, "behavior", where), "behavior", where);
}

/// Removes white space and makes punctuation marks words.
PreTokenizer bert_pre_tokenizer(const PreTokenizerJson& step, const std::string& where) {
  require_only(step, {}, {"type"}, where);
  const PreTokenizer marks = by_character(Behavior::isolated, is_library_punctuation);
  const PreTokenizer words = by_character(Behavior::removed, is_white_space);
  return {[=](Stretch stretch, const UseStretch& use) {
    words.split(stretch, [&](Stretch word) { marks.split(word, use); });
  }};
}

PreTokenizer white_space_split(const PreTokenizerJson& step, const std::string& where) {
  require_only(step, {}, {"type"}, where);
  return by_character(Behavior::removed, is_white_space);
}

PreTokenizer punctuation(const PreTokenizerJson& step, const std::string& where) {
  require_only(step, {}, {"type", "behavior"}, where);
  const bool says = step.contains("behavior");
  return by_character(says ? behavior_of(step, where) : Behavior::isolated, is_library_punctuation);
}

PreTokenizer digits(const PreTokenizerJson& step, const std::string& where) {
  require_only(step, {}, {"type", "individual_digits"}, where);
  const bool each = flag_of(step, "individual_digits", where);
  return by_character(each ? Behavior::isolated : Behavior::contiguous, is_library_numeric);
}

/// Splits into the words of GPT-2 or another byte-level tokenizer.
PreTokenizer byte_words(WordPattern pattern) {
  const CutPlaces cuts = pattern.prefix_space() ? kBeforeSpaces : CutPlaces{};
  const auto words = std::make_shared<const WordPattern>(std::move(pattern));
  return {[words](Stretch stretch, const UseStretch& use) {
            bool first = stretch.first;
            words->for_each_word(stretch.text, [&](std::string_view word) {
              use({word, first});
              first = false;
            });
          },
          cuts};
}

/// Uses GPT-2's pattern unless use_regex is false. Without the pattern and a prefix space, the step
/// has no effect: parts are already bytes.
PreTokenizer byte_level(const PreTokenizerJson& step, const std::string& where) {
  require_only(step, {}, {"type", "trim_offsets", "add_prefix_space", "use_regex"}, where);
  const bool prefix = flag_of(step, "add_prefix_space", where);
  const bool cuts = !step.contains("use_regex") || flag_of(step, "use_regex", where);
  if (cuts) return byte_words({WordPattern::gpt2(), where, prefix});
  if (!prefix) return {};
  return {[](Stretch stretch, const UseStretch& use) {
            if (stretch.text.starts_with(' ')) return use(stretch);
            const std::string spaced = fmt::format(" {}", stretch.text);
            use({spaced, stretch.first});
          },
          kBeforeSpaces};
}

PreTokenizer split_by_pattern(const PreTokenizerJson& step, const std::string& where) {
  require_only(step, {}, {"type", "pattern", "behavior", "invert"}, where);
  const PreTokenizerJson& pattern = object_of(step, "pattern", where);
  require_only(pattern, {}, {"String", "Regex"}, where);
  const Behavior behavior = behavior_of(step, where);
  const bool inverted = flag_of(step, "invert", where);
  const std::string text = pattern.contains("String")
                               ? literal_pattern(text_of(pattern, "String", where))
                               : text_of(pattern, "Regex", where);
  const auto words = std::make_shared<const WordPattern>(text, where);
  if (behavior == Behavior::isolated && words->keeps_lines()) return byte_words({text, where});
  return {[=](Stretch stretch, const UseStretch& use) {
            PartJoiner parts(behavior, stretch, use);
            WordPattern::Words all(*words, stretch.text);
            bool matches = false;
            for (std::string_view word; all.next(word, matches);)
              parts.add(word, matches != inverted);
            parts.flush();
          },
          kNoPlaces};
}

enum class Prepended : std::uint8_t { always, first, never };
constexpr Entry<Prepended> kPrepended[] = {
    {"always", Prepended::always}, {"first", Prepended::first}, {"never", Prepended::never}};

PreTokenizer metaspace(const PreTokenizerJson& step, const std::string& where) {
  require_only(step, {},
               {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"},
               where);
  const std::string blank = text_of(step, "replacement", where);
  const bool says = step.contains("prepend_scheme");
  const Prepended prepended =
      says ? lookup<Prepended>(kPrepended, text_of(step, "prepend_scheme", where), "prepend_scheme",
                               where)
           : Prepended::always;
  if (step.contains("add_prefix_space") && !flag_of(step, "add_prefix_space", where) &&
      prepended != Prepended::never)
    throw_input("Metaspace has add_prefix_space = false, but not prepend_scheme = \"never\"", where,
                "use consistent rules, as required by `tokenizers`");
  const bool splits = !step.contains("split") || flag_of(step, "split", where);
  return {[=](Stretch stretch, const UseStretch& use) {
            std::string text;
            for (const char c : stretch.text) c == ' ' ? text.append(blank) : text.append(1, c);
            const bool wants =
                prepended == Prepended::always || (prepended == Prepended::first && stretch.first);
            if (wants && !text.starts_with(blank)) text.insert(0, blank);
            if (!splits) return use({text, stretch.first});
            const std::string_view all = text;
            for (std::size_t begin = 0; begin < all.size();) {
              const std::size_t end = std::min(all.find(blank, begin + 1), all.size());
              use({all.substr(begin, end - begin), stretch.first && begin == 0});
              begin = end;
            }
          },
          splits ? kBeforeSpaces : kNoPlaces};
}

constexpr Entry<MakePreTokenizer> kPreTokenizers[] = {{"BertPreTokenizer", bert_pre_tokenizer},
                                                      {"ByteLevel", byte_level},
                                                      {"Digits", digits},
                                                      {"Metaspace", metaspace},
                                                      {"Punctuation", punctuation},
                                                      {"Split", split_by_pattern},
                                                      {"WhitespaceSplit", white_space_split}};

/// Applies `made`, then converts each part to GPT-2's alphabet for later steps.
PreTokenizer printable(PreTokenizer made) {
  const auto split = [step = std::move(made.split)](Stretch stretch, const UseStretch& use) {
    const auto print = [&](Stretch part) {
      const std::string text = printable_of_bytes(part.text);
      use({text, part.first});
    };
    step ? step(stretch, print) : print(stretch);
  };
  return {split, made.cuts};
}

/// Converts parts from GPT-2's alphabet to bytes.
PreTokenizer back_to_bytes() {
  return {[](Stretch stretch, const UseStretch& use) {
    std::string bytes;
    CONCERTINA_CHECK(bytes_of_printable(stretch.text, bytes), "{}", stretch.text);
    use({bytes, stretch.first});
  }};
}

}  // namespace

PreTokenizer between_blanks() {
  return {[](Stretch stretch, const UseStretch& use) {
            constexpr std::string_view kBlank = "\u2581";
            const std::string_view text = stretch.text;
            for (std::size_t begin = 0, at = 0; begin < text.size(); begin = at) {
              while (text.substr(at).starts_with(kBlank)) at += kBlank.size();
              at = std::min(text.find(kBlank, at), text.size());
              use({text.substr(begin, at - begin), stretch.first && begin == 0});
            }
          },
          kNoPlaces};
}

WordSteps read_pre_tokenizers(const PreTokenizerJson& pre_tokenizer, const std::string& where) {
  WordSteps words;
  const auto steps = steps_of(pre_tokenizer, "pretokenizers", where);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string type = type_of(*steps[i], where);
    PreTokenizer made =
        lookup<MakePreTokenizer>(kPreTokenizers, type, "pre-tokenizer", where)(*steps[i], where);
    const bool last = i + 1 == steps.size();
    if (type == "ByteLevel" && words.bytes)
      throw_input("more than one ByteLevel pre-tokenizer", where, "use only one");
    words.bytes = words.bytes || type == "ByteLevel";
    if (type == "ByteLevel" && !last) made = printable(std::move(made));
    if (made.split) words.steps.push_back(std::move(made));
    if (words.bytes && last && type != "ByteLevel") words.steps.push_back(back_to_bytes());
  }
  return words;
}

}  // namespace concertina
