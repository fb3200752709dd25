#include "io/tokenizers/stages.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/registry.h"
#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/characters/json_rules.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina {
namespace {

using DecoderJson = nlohmann::json;
using MakeDecoder = Decoder (*)(const DecoderJson& step, const std::string& where);
using Names = std::vector<std::string>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Converts names from GPT-2's alphabet to bytes.
Decoder byte_level_decoder(const DecoderJson& step, const std::string& where) {
  require_only(step, {}, {"type", "add_prefix_space", "trim_offsets", "use_regex"}, where);
  return [](Names& names) {
    std::string bytes;
    for (std::string& name : names)
      if (bytes_of_printable(name, bytes)) name = bytes;
  };
}

/// Separates words with spaces; "cleanup" removes the space before punctuation.
Decoder word_piece_decoder(const DecoderJson& step, const std::string& where) {
  require_only(step, {}, {"type", "prefix", "cleanup"}, where);
  return [prefix = text_of(step, "prefix", where),
          cleans = flag_of(step, "cleanup", where)](Names& names) {
    constexpr std::pair<std::string_view, std::string_view> kJoined[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string& name = names[i];
      if (i > 0 && name.starts_with(prefix))
        name.erase(0, prefix.size());
      else if (i > 0)
        name.insert(0, 1, ' ');
      if (!cleans) continue;
      for (const auto& [from, to] : kJoined) replace_all(name, from, to);
    }
  };
}

Decoder metaspace_decoder(const DecoderJson& step, const std::string& where) {
  require_only(step, {},
               {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"},
               where);
  const bool never =
      step.contains("prepend_scheme") && text_of(step, "prepend_scheme", where) == "never";
  return [blank = text_of(step, "replacement", where), never](Names& names) {
    for (std::size_t i = 0; i < names.size(); ++i)
      replace_all(names[i], blank, i == 0 && !never ? "" : " ");
  };
}

/// For CLIP, where the last token of a word ends with the suffix.
Decoder suffix_decoder(const DecoderJson& step, const std::string& where) {
  require_only(step, {}, {"type", "suffix"}, where);
  return [suffix = text_of(step, "suffix", where)](Names& names) {
    for (std::size_t i = 0; i < names.size(); ++i)
      replace_all(names[i], suffix, i + 1 == names.size() ? "" : " ");
  };
}

std::optional<char> byte_of_name(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || !name.ends_with('>')) return std::nullopt;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(name.data() + 3, name.data() + 5, byte, 16);
  if (error != std::errc() || end != name.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

/// Each byte of an invalid UTF-8 sequence becomes U+FFFD.
Decoder byte_fallback_decoder(const DecoderJson& step, const std::string& where) {
  require_only(step, {}, {"type"}, where);
  return [](Names& names) {
    Names made;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (is_utf8(bytes))
        made.push_back(bytes);
      else
        made.insert(made.end(), bytes.size(), "\uFFFD");
      bytes.clear();
    };
    for (std::string& name : names) {
      if (const auto byte = byte_of_name(name)) {
        bytes += *byte;
        continue;
      }
      flush();
      made.push_back(std::move(name));
    }
    flush();
    names = std::move(made);
  };
}

Decoder fuse_decoder(const DecoderJson& step, const std::string& where) {
  require_only(step, {}, {"type"}, where);
  return [](Names& names) {
    std::string all;
    for (const std::string& name : names) all += name;
    names.assign(1, all);
  };
}

Decoder strip_decoder(const DecoderJson& step, const std::string& where) {
  require_only(step, {}, {"type", "content", "start", "stop"}, where);
  const std::string content = text_of(step, "content", where);
  const std::int64_t start = count_of(step, "start", where), stop = count_of(step, "stop", where);
  return [=](Names& names) {
    for (std::string& name : names) {
      std::string_view left = name;
      for (std::int64_t i = 0; i < start && left.starts_with(content); ++i)
        left.remove_prefix(content.size());
      for (std::int64_t i = 0; i < stop && left.ends_with(content); ++i)
        left.remove_suffix(content.size());
      name = std::string(left);
    }
  };
}

Decoder replace_decoder(const DecoderJson& step, const std::string& where) {
  require_only(step, {}, {"type", "pattern", "content"}, where);
  return [replaced = read_replacement(step, where)](Names& names) {
    for (std::string& name : names) name = replaced(name);
  };
}

constexpr Entry<MakeDecoder> kDecoders[] = {
    {"BPEDecoder", suffix_decoder},    {"ByteFallback", byte_fallback_decoder},
    {"ByteLevel", byte_level_decoder}, {"Fuse", fuse_decoder},
    {"Metaspace", metaspace_decoder},  {"Replace", replace_decoder},
    {"Strip", strip_decoder},          {"WordPiece", word_piece_decoder}};

}  // namespace

std::vector<Decoder> read_decoders(const DecoderJson& decoder, const std::string& where) {
  std::vector<Decoder> all;
  for (const DecoderJson* step : steps_of(decoder, "decoders", where))
    all.push_back(
        lookup<MakeDecoder>(kDecoders, type_of(*step, where), "decoder", where)(*step, where));
  if (decoder.is_null())
    all.emplace_back([](Names& names) {
      for (std::size_t i = 1; i < names.size(); ++i) names[i].insert(0, 1, ' ');
    });
  return all;
}

}  // namespace concertina
