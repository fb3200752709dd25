#include "io/tokenizers/stages.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/registry.h"
#include "core/text/utf8.h"
#include "io/tokenizers/characters/character_map.h"
#include "io/tokenizers/characters/json_rules.h"
#include "io/tokenizers/characters/library_characters.h"
#include "io/tokenizers/characters/unicode.h"
#include "io/tokenizers/characters/word_pattern.h"

namespace concertina {
namespace {

using NormalizerJson = nlohmann::json;
using MakeNormalizer = Normalizer (*)(const NormalizerJson& step, const std::string& where);

constexpr CutPlaces kNowhere{false, false};

bool is_ideograph(std::uint32_t code) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kRanges[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  if (code < 0x3400) return false;
  return std::ranges::any_of(
      kRanges, [&](const auto& range) { return code >= range.first && code <= range.second; });
}

/// Removes control characters and converts white space to spaces.
std::string cleaned(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const std::uint32_t code = next_code(text, at).value_or(0xFFFD);
    if (code >= ' ' && code < 0x7F)
      result += text[here];
    else if (!is_library_control(code))
      is_white_space(code) ? result += ' ' : result.append(text, here, at - here);
  }
  return result;
}

std::string spaced_ideographs(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const bool alone = is_ideograph(next_code(text, at).value_or(0xFFFD));
    if (alone) result += ' ';
    result.append(text, here, at - here);
    if (alone) result += ' ';
  }
  return result;
}

/// Text normalization in BERT's tokenizer: cleaning, and optional lower-casing (Devlin et al.,
/// 2019; BertNormalizer of `tokenizers`).
Normalizer bert_normalizer(const NormalizerJson& step, const std::string& where) {
  require_only(step, {},
               {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}, where);
  const bool clean = flag_of(step, "clean_text", where);
  const bool chinese = flag_of(step, "handle_chinese_chars", where);
  const bool lower = flag_of(step, "lowercase", where);
  const bool says = step.contains("strip_accents") && !step["strip_accents"].is_null();
  const bool strip = says ? flag_of(step, "strip_accents", where) : lower;
  return {[=](std::string_view text) {
    std::string result = clean ? cleaned(text) : std::string(text);
    const bool ascii =
        std::ranges::none_of(result, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    if (chinese && !ascii) result = spaced_ideographs(result);
    if (strip && !ascii)
      result = text_without(library_normal_form(result, "NFD"), is_library_non_spacing);
    return lower ? library_lower(result) : result;
  }};
}

Normalizer lowercase(const NormalizerJson& step, const std::string& where) {
  require_only(step, {}, {"type"}, where);
  return {library_lower};
}

Normalizer normal_form(const NormalizerJson& step, const std::string& where) {
  require_only(step, {}, {"type"}, where);
  return {[form = type_of(step, where)](std::string_view text) {
    return library_normal_form(text, form);
  }};
}

Normalizer strip_accents(const NormalizerJson& step, const std::string& where) {
  require_only(step, {}, {"type"}, where);
  return {[](std::string_view text) { return text_without(text, is_library_combining); }};
}

Normalizer strip(const NormalizerJson& step, const std::string& where) {
  require_only(step, {}, {"type", "strip_left", "strip_right"}, where);
  return {[left = flag_of(step, "strip_left", where),
           right = flag_of(step, "strip_right", where)](std::string_view text) {
            if (left) text.remove_prefix(white_space_after(text, 0));
            if (right) text = text.substr(0, white_space_before(text, text.size()));
            return std::string(text);
          },
          kNowhere};
}

Normalizer prepend(const NormalizerJson& step, const std::string& where) {
  require_only(step, {}, {"type", "prepend"}, where);
  return {[before = text_of(step, "prepend", where)](std::string_view text) {
            return text.empty() ? std::string() : before + std::string(text);
          },
          kNowhere};
}

/// Cutting a text at a single space or line break never splits a string that is one character,
/// contains no white space, or consists of several spaces.
Normalizer replace(const NormalizerJson& step, const std::string& where) {
  require_only(step, {}, {"type", "pattern", "content"}, where);
  const NormalizerJson& pattern = object_of(step, "pattern", where);
  bool stays = pattern.contains("Regex") && pattern["Regex"] == " {2,}";
  if (pattern.contains("String") && pattern["String"].is_string()) {
    const auto& text = pattern["String"].get_ref<const std::string&>();
    stays = text.size() == 1 || text.find_first_of(" \n") == std::string::npos;
  }
  return {read_replacement(step, where), stays ? CutPlaces{} : kNowhere};
}

Normalizer precompiled(const NormalizerJson& step, const std::string& where) {
  require_only(step, {}, {"type", "precompiled_charsmap"}, where);
  const auto map =
      std::make_shared<const CharacterMap>(text_of(step, "precompiled_charsmap", where), where);
  return {[map](std::string_view text) { return map->apply(text); }};
}

constexpr Entry<MakeNormalizer> kNormalizers[] = {{"BertNormalizer", bert_normalizer},
                                                  {"Lowercase", lowercase},
                                                  {"NFC", normal_form},
                                                  {"NFD", normal_form},
                                                  {"NFKC", normal_form},
                                                  {"NFKD", normal_form},
                                                  {"Precompiled", precompiled},
                                                  {"Prepend", prepend},
                                                  {"Replace", replace},
                                                  {"Strip", strip},
                                                  {"StripAccents", strip_accents}};

}  // namespace

std::function<std::string(std::string_view)> read_replacement(const NormalizerJson& step,
                                                              const std::string& where) {
  const NormalizerJson& pattern = object_of(step, "pattern", where);
  std::string content = text_of(step, "content", where);
  require_only(pattern, {}, {"String", "Regex"}, where);
  if (pattern.contains("String"))
    return [from = text_of(pattern, "String", where), to = std::move(content),
            where](std::string_view text) {
      std::string result;
      std::size_t begin = 0;
      for (std::size_t at; !from.empty() && (at = text.find(from, begin)) != std::string_view::npos;
           begin = at + from.size())
        result.append(text, begin, at - begin).append(to);
      return result.append(text.substr(begin));
    };
  const auto words = std::make_shared<const WordPattern>(text_of(pattern, "Regex", where), where);
  return [words, to = std::move(content)](std::string_view text) {
    std::string result;
    WordPattern::Words all(*words, text);
    bool matches = false;
    for (std::string_view word; all.next(word, matches);) result += matches ? to : word;
    return result;
  };
}

std::vector<Normalizer> read_normalizers(const NormalizerJson& normalizer,
                                         const std::string& where) {
  std::vector<Normalizer> all;
  for (const NormalizerJson* step : steps_of(normalizer, "normalizers", where)) {
    const std::string type = type_of(*step, where);
    all.push_back(lookup<MakeNormalizer>(kNormalizers, type, "normalizer", where)(*step, where));
  }
  return all;
}

}  // namespace concertina
