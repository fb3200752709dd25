// Valid files of tokenizers, weights and JSON, as bytes.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/checkpoint/safetensors_folder.h"
#include "io/strict_json.h"
#include "io/token_file.h"
#include "io/tokenizers/sentencepiece_library.h"
#include "tests/io/fuzz_seeds.h"
#include "tests/io/token_files.h"
#include "tests/io/tokenizer_hash.h"

namespace concertina {
namespace {

using SeedJson = nlohmann::json;

/// Letters, digits, symbols, spaces, a contraction, an added token, characters of 2 to 4 bytes.
constexpr const char* kText =
    "the other's  12 of <|end|> [MASK]\r\n\xC3\xA9t\xC3\xA9 \xE4\xBD\xA0 "
    "\xF0\x9F\x98\x80 then.";

/// Reads `choice` like data.tokenizer, and encodes and decodes a text.
void use_tokenizer(const std::string& choice) {
  const auto tokenizer = make_tokenizer(choice, "data.tokenizer");
  const std::vector<std::int32_t> tokens = tokenizer->tokens(kText);
  for (const std::int32_t token : tokens) {
    EXPECT_GE(token, 0);
    EXPECT_LT(token, tokenizer->vocabulary());
  }
  tokenizer->decode(tokens);
  for (const SpecialToken which : {SpecialToken::unknown, SpecialToken::begin, SpecialToken::mask})
    EXPECT_LT(tokenizer->special(which).value_or(0), tokenizer->vocabulary());
  EXPECT_LE(tokenizer->cut(kText, 4), std::string_view(kText).size());
}

/// A tokenizer selected by its first file.
FuzzSeed tokenizer_seed(const std::string& name, const std::vector<std::string>& names,
                        const std::vector<std::string>& contents) {
  return {.name = name,
          .names = names,
          .contents = contents,
          .read = [first = names[0]](const Folder& folder) { use_tokenizer(folder.path(first)); }};
}

/// One file of the format: a JSON header after its length, then the bytes of the tensors.
std::string weights(const SeedJson& header, std::size_t bytes) {
  const std::string text = header.dump();
  return little_endian(std::vector<std::uint64_t>{text.size()}) + text + ramp(bytes);
}

SeedJson tensor(const char* type, const std::vector<int>& shape, int begin, int end) {
  return {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

void read_weights(const Folder& folder) {
  const SafetensorsFolder stored(folder.root.path());
  for (const std::string& name : stored.names()) {
    std::vector<float> values(stored.find(name)->elements());
    stored.read(name, 0, values);
  }
}

FuzzSeed weights_seed() {
  return {.name = "safetensors",
          .names = {"model.safetensors"},
          .contents = {weights({{"__metadata__", {{"format", "pt"}}},
                                {"a.weight", tensor("F32", {2, 3}, 0, 24)},
                                {"b", tensor("BF16", {4}, 24, 32)},
                                {"c", tensor("F16", {1, 2}, 32, 36)},
                                {"d", tensor("F64", {}, 36, 44)}},
                               44)},
          .read = read_weights};
}

FuzzSeed indexed_weights_seed() {
  const std::string first = "model-00001-of-00002.safetensors";
  const std::string second = "model-00002-of-00002.safetensors";
  const SeedJson index{{"metadata", {{"total_size", 32}}},
                       {"weight_map", {{"a", first}, {"b", second}, {"c", first}}}};
  return {
      .name = "safetensors_index",
      .names = {"model.safetensors.index.json", first, second},
      .contents = {index.dump(),
                   weights({{"a", tensor("F32", {2}, 0, 8)}, {"c", tensor("F32", {2, 2}, 8, 24)}},
                           24),
                   weights({{"b", tensor("BF16", {4}, 0, 8)}}, 8)},
      .read = read_weights};
}

FuzzSeed json_seed() {
  return {
      .name = "strict_json",
      .names = {"a.json"},
      .contents =
          {"{\"a\": [1, -2.5e3, true, null], \"\\u00e9\\ud83d\\ude00\": {\"b\": \"\xC3\xA9\\n\", "
           "\"c\": {}}, \"d\": [[], {\"a\": 18446744073709551615}]}"},
      .read = [](const Folder& folder) {
        parse_strict_object(slurp(folder.path("a.json")), folder.path("a.json"));
      }};
}

/// The token file with its own reader and its hash, which runs do not check.
FuzzSeed verified_token_file_seed() {
  const Folder folder;
  write_token_file(folder.path("a"), 50257, std::string(64, 'a'), {1, 50000, 3, 4, 5, 6, 7},
                   {0, 2, 7});
  return {.name = "token_file_verified",
          .names = {"a.tok"},
          .contents = {slurp(folder.path("a"))},
          .read = [](const Folder& of) { TokenFile(of.path("a.tok")).verify(); }};
}

}  // namespace

/// Add a new reader here.
std::vector<FuzzSeed> model_seeds() {
  const auto tokenizer = [](const std::string& name) { return golden_text("tokenizers/" + name); };
  std::vector<FuzzSeed> seeds{
      tokenizer_seed("bpe_json", {"tokenizer.json"}, {tokenizer("llama3.json")}),
      tokenizer_seed("bpe_pair", {"vocab.json", "merges.txt"},
                     {tokenizer("gpt2/vocab.json"), tokenizer("gpt2/merges.txt")}),
      tokenizer_seed("wordpiece_json", {"tokenizer.json"}, {tokenizer("uncased.json")}),
      tokenizer_seed("wordpiece_lines", {"vocab.txt", "tokenizer_config.json"},
                     {tokenizer("uncased.txt"), R"({"do_lower_case": false})"}),
      weights_seed(),
      indexed_weights_seed(),
      json_seed(),
      verified_token_file_seed(),
  };
  for (const std::string family : {"roberta", "clip", "falcon", "llama2", "mistral", "albert"})
    seeds.push_back(tokenizer_seed(family + "_json", {"tokenizer.json"},
                                   {tokenizer("families/" + family + ".json")}));
  if (has_sentencepiece())
    for (const std::string kind : {"bpe", "unigram"})
      seeds.push_back(tokenizer_seed("sentencepiece_" + kind, {"small.model"},
                                     {tokenizer("small_" + kind + ".model")}));
  return seeds;
}

}  // namespace concertina
