// Compares tokenizers with Hugging Face's `tokenizers` and Google's `sentencepiece` on fuzzed text,
// and tests bad files.
#include "io/tokenizers/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <sstream>

#include "io/file.h"
#include "io/tokenizers/bpe_trainer.h"
#include "io/tokenizers/sentencepiece_library.h"
#include "tests/io/io_test.h"
#include "tests/io/tokenizer_corpus.h"
#include "tests/io/tokenizer_hash.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

std::shared_ptr<const Tokenizer> golden(const std::string& name) {
  return make_tokenizer(name == "bytes" ? name : kTokenizers + name, "data.tokenizer");
}

class TokenizerGolden : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerGolden, NoTokenOfAMegabyteDiffers) {
  if (GetParam().ends_with(".model") && !has_sentencepiece())
    GTEST_SKIP() << "built without libsentencepiece";
  static const auto kExpected = nlohmann::json::parse(golden_text("tokenizers.json"));
  EXPECT_GE(expect_chunks(*golden(GetParam()), kExpected[GetParam()], kExpected["seed"]),
            1'000'000U);
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGolden,
                         testing::Values("gpt2", "gpt2.json", "gpt2_prefix.json", "llama3.json",
                                         "uncased.json", "uncased.txt", "cased.json",
                                         "sentencepiece_unigram.model", "sentencepiece_bpe.model"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(Tokenizer, LearnsTheMergesOfTheReference) {
  struct Learned {
    std::string name;
    WordPattern pattern;
  };
  const Learned all[] = {{"gpt2.json", {WordPattern::gpt2(), ""}},
                         {"gpt2_prefix.json", {WordPattern::gpt2(), "", true}},
                         {"llama3.json", {WordPattern::llama3(), ""}}};
  for (const auto& [name, pattern] : all) {
    WordCounts counts;
    for (std::uint64_t i = 0; i < 300; ++i)
      count_words(pattern, tokenizer_corpus::chunk(1, i), counts);
    const LearnedPairs learned = learn_pairs(counts, 1000, {"<|endoftext|>"});
    const auto mine = nlohmann::json::parse(description_of(learned, pattern));
    const auto theirs = nlohmann::json::parse(golden_text("tokenizers/" + name));
    for (const char* const part :
         {"/model/vocab", "/model/merges", "/added_tokens", "/pre_tokenizer"}) {
      const nlohmann::json::json_pointer at(part);
      EXPECT_EQ(mine[at], theirs[at]) << name << part;
    }
    if (name == "llama3.json") continue;
    const TemporaryDirectory root;
    spill(root.path() + "/tokenizer.json", mine.dump());
    const std::string sample = tokenizer_corpus::chunk(6, 0);
    EXPECT_EQ(make_tokenizer(root.path(), "")->tokens(sample), golden(name)->tokens(sample));
  }
}

TEST(Tokenizer, WordsOfLinesBeginWithTheirPrefixSpace) {
  WordCounts counts;
  count_lines({WordPattern::gpt2(), "", true}, "ab\n\n \ncd\r\n ef", counts);
  EXPECT_EQ(counts,
            (WordCounts{{" ab", 1}, {"\n", 1}, {" \n", 2}, {" cd", 1}, {"\r\n", 1}, {" ef", 1}}));
}

TEST(Tokenizer, BytePairsGiveTheTextBack) {
  for (const char* name : {"gpt2", "llama3.json"}) {
    const auto tokenizer = golden(name);
    for (std::uint64_t i = 0; i < 50; ++i) {
      const std::string text = tokenizer_corpus::chunk(3, i);
      EXPECT_EQ(tokenizer->decode(tokenizer->tokens(text)), text);
    }
  }
}

TEST(Tokenizer, CutsChangeNoToken) {
  for (const char* name :
       {"bytes", "gpt2", "gpt2_prefix.json", "llama3.json", "uncased.json", "cased.json"}) {
    const auto tokenizer = golden(name);
    int cuts = 0;
    for (std::uint64_t i = 0; i < 40; ++i) {
      std::string text = tokenizer_corpus::chunk(4, i);
      for (std::size_t at = 30; at < text.size(); at += 61)  // line breaks anywhere
        if (static_cast<unsigned char>(text[at]) < 0x80) text[at] = '\n';
      cuts += expect_cuts(*tokenizer, text, 97);
    }
    EXPECT_GT(cuts, 100) << name;
  }
}

TEST(Tokenizer, APrefixSpaceStandsBeforeEachStretchThatHasNone) {
  const auto tokenizer = golden("gpt2_prefix.json");
  const auto text = [&](std::string_view of) { return tokenizer->decode(tokenizer->tokens(of)); };
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("the"), " the");
  EXPECT_EQ(text(" the"), " the");
  EXPECT_EQ(text("\n"), " \n");
  EXPECT_EQ(text("the<|endoftext|>the<|endoftext|><|endoftext|> the"),
            " the<|endoftext|> the<|endoftext|><|endoftext|> the");
  EXPECT_EQ(tokenizer->cut("one line\nno\u00e9 space  \x01 a end", 4), 24U);
  // GPT-2's two files have this setting in a third.
  const TemporaryDirectory root;
  std::filesystem::copy(kTokenizers + "gpt2", root.path() + "/gpt2");
  const auto without = make_tokenizer(root.path() + "/gpt2", "");
  spill(root.path() + "/gpt2/tokenizer_config.json", R"({"add_prefix_space": true})");
  const auto with = make_tokenizer(root.path() + "/gpt2", "");
  EXPECT_EQ(with->tokens("the the"), without->tokens(" the the"));
  EXPECT_NE(with->fingerprint(), without->fingerprint());
}

TEST(Tokenizer, LongRunsOfOneKindAreWords) {
  for (const char* name : {"gpt2", "llama3.json", "uncased.json"}) {
    const auto tokenizer = golden(name);
    for (const char* unit : {" ", "a", "7", "!", "\n", "\xe4\xb8\xad", "e\xcc\x81"}) {
      std::string text;
      while (text.size() < 100'000) text += unit;
      const auto tokens = tokenizer->tokens(text);
      if (std::string_view(name) != "uncased.json") {
        EXPECT_EQ(tokenizer->decode(tokens), text) << name << " '" << unit << "'";
      }
    }
  }
}

TEST(Tokenizer, SpecialTokensAreTheirOwn) {
  const auto bert = golden("uncased.txt"), gpt = golden("gpt2");
  std::int32_t id = 0;
  for (const SpecialToken which :
       {SpecialToken::padding, SpecialToken::unknown, SpecialToken::classify,
        SpecialToken::separate, SpecialToken::mask})
    EXPECT_EQ(bert->special(which), id++);
  EXPECT_EQ(gpt->special(SpecialToken::end), 0);
  EXPECT_EQ(gpt->tokens("a<|endoftext|>a")[1], 0);
  EXPECT_EQ(gpt->special(SpecialToken::mask), std::nullopt);
  EXPECT_EQ(golden("bytes")->special(SpecialToken::end), std::nullopt);
}

Error tokenizer_error(const std::string& choice) {
  return input_error([&] { make_tokenizer(choice, "data.tokenizer"); });
}

/// Returns the tokenizer `of` in a folder with `others`.
std::shared_ptr<const Tokenizer> with_files(const std::string& of,
                                            const std::map<std::string, std::string>& others) {
  const TemporaryDirectory root;
  const std::string folder = root.path() + "/t", name = of.ends_with(".json")  ? "/tokenizer.json"
                                                        : of.ends_with(".txt") ? "/vocab.txt"
                                                                               : "";
  if (!name.empty()) std::filesystem::create_directory(folder);
  std::filesystem::copy(kTokenizers + of, folder + name);
  for (const auto& [other, text] : others) spill(folder + "/" + other, text);
  return make_tokenizer(folder, "");
}

/// Returns the effect of files next to `plain`, which is `of`, on a special token.
void expect_special(const std::string& of, const Tokenizer& plain, SpecialToken role,
                    const std::string& key) {
  SCOPED_TRACE(of + " " + key);
  const std::int32_t id = 300;
  const auto count = static_cast<std::int32_t>(plain.vocabulary());
  const std::string begin = "{\"" + key, quoted = nlohmann::json(plain.name(id)).dump(),
                    config = "tokenizer_config.json", map = "special_tokens_map.json",
                    generation = "generation_config.json";
  const auto special = [&](const std::map<std::string, std::string>& files) {
    return with_files(of, files)->special(role);
  };
  EXPECT_EQ(special({{config, begin + "\": " + quoted + "}"}}), id);
  EXPECT_EQ(special({{config, begin + R"(": {"content": )" + quoted + "}}"}}), id);
  EXPECT_EQ(special({{config, begin + "\": null}"}}), std::nullopt);
  EXPECT_EQ(special({{map, begin + "\": " + quoted + "}"}}), id);
  // A name that is not in the vocabulary becomes an additional token, as in transformers.
  EXPECT_EQ(special({{config, begin + R"(": "<new>"})"}}), count);
  EXPECT_EQ(special({{generation, begin + "_id\": [300, 5]}"}}), id);
  EXPECT_EQ(special({{generation, begin + "_id\": 300}"}}), id);
  EXPECT_EQ(special({{generation, begin + "_id\": 4000000}"}}), plain.special(role));
  // The second file has priority, except if the first has all tokens.
  const auto both = [&](const std::string& rest) {
    return special(
        {{config, begin + R"(": "<new>")" + rest}, {map, begin + "\": " + quoted + "}"}});
  };
  EXPECT_EQ(both("}"), id);
  EXPECT_EQ(both(R"(, "added_tokens_decoder": {}})"), count);
}

TEST(Tokenizer, FilesBesideItDecideSpecialTokens) {
  const std::vector<std::pair<SpecialToken, std::string>> roles{
      {SpecialToken::unknown, "unk_token"},  {SpecialToken::begin, "bos_token"},
      {SpecialToken::end, "eos_token"},      {SpecialToken::classify, "cls_token"},
      {SpecialToken::separate, "sep_token"}, {SpecialToken::padding, "pad_token"},
      {SpecialToken::mask, "mask_token"}};
  for (const std::string of : {"gpt2", "gpt2.json", "llama3.json", "uncased.txt", "cased.json"}) {
    const auto plain = with_files(of, {});
    const auto count = static_cast<std::int32_t>(plain->vocabulary());
    for (const auto& [role, key] : roles)
      if (of != "llama3.json" || role == SpecialToken::end) expect_special(of, *plain, role, key);
    // In texts, it is recognized as this token.
    const auto configured = [&](const std::string& text) {
      return with_files(of, {{"tokenizer_config.json", text}});
    };
    const auto ends = configured(R"({"eos_token": "<new>"})");
    EXPECT_EQ(ends->vocabulary(), count + 1);
    EXPECT_EQ(ends->tokens("a<new>").back(), count);
    EXPECT_NE(ends->fingerprint(), plain->fingerprint());
    EXPECT_EQ(configured("{}")->fingerprint(), plain->fingerprint());
    EXPECT_THROW(configured(R"({"eos_token": 5})"), Error);
  }
  const auto more = with_files("gpt2", {{"added_tokens.json", R"({"<a>": 1001, "<b>": 1000})"}});
  EXPECT_EQ(more->tokens("<a><b>"), (std::vector<std::int32_t>{1001, 1000}));
}

TEST(Tokenizer, APieceOfSentencePieceHasItsName) {
  if (!has_sentencepiece()) GTEST_SKIP() << "no libsentencepiece";
  for (const char* file : {"small_bpe.model", "small_unigram.model"}) {
    const auto tokenizer = golden(file);
    EXPECT_EQ(tokenizer->name(*tokenizer->special(SpecialToken::unknown)), "<unk>");
    // Names of the versions of Mistral's file.
    const TemporaryDirectory root;
    std::filesystem::copy(kTokenizers + file, root.path() + "/tokenizer.model.v3");
    EXPECT_EQ(make_tokenizer(root.path(), "")->fingerprint(), tokenizer->fingerprint());
    EXPECT_EQ(make_tokenizer(root.path() + "/tokenizer.model.v3", "")->fingerprint(),
              tokenizer->fingerprint());
    spill(root.path() + "/README.txt", "not a vocabulary");
    spill(root.path() + "/tokenizer_config.json",
          R"({"eos_token": ")" + tokenizer->name(9) + R"("})");
    EXPECT_EQ(make_tokenizer(root.path(), "")->special(SpecialToken::end), 9);
  }
}

TEST(Tokenizer, APointerOfGitLfsIsNamed) {
  const TemporaryDirectory root;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
      "\nsize 12345\n";
  for (const char* name : {"tokenizer.json", "vocab.txt", "tokenizer.model", "vocab.json"}) {
    spill(root.path() + "/merges.txt", "");
    spill(root.path() + "/" + name, pointer);
    expect_has(tokenizer_error(root.path() + "/" + name).message(), "Git LFS");
  }
}

// As in `tokenizers`: "xa" begins first, but tokens that are not normalized are found before it.
TEST(Tokenizer, AddedTokensThatAreNotNormalizedAreFoundFirst) {
  const TemporaryDirectory root;
  std::string text = golden_text("tokenizers/gpt2.json");
  const std::string list = R"("added_tokens":[)";
  text.insert(text.find(list) + list.size(),
              R"({"id":1000,"content":"xa","normalized":true},{"id":1001,"content":"ab"},)");
  spill(root.path() + "/tokenizer.json", text);
  const auto tokenizer = make_tokenizer(root.path(), "");
  const std::int32_t x = tokenizer->tokens("x")[0], y = tokenizer->tokens("y")[0];
  EXPECT_EQ(tokenizer->tokens("xaby"), (std::vector<std::int32_t>{x, 1001, y}));
  EXPECT_EQ(tokenizer->tokens("xay"), (std::vector<std::int32_t>{1000, y}));
}

TEST(Tokenizer, FilesThatDecideTokensDecideTheFingerprint) {
  const auto of = [](const std::string& name) { return golden(name)->fingerprint(); };
  EXPECT_EQ(of("gpt2"), of("gpt2/vocab.json"));
  EXPECT_NE(of("gpt2"), of("llama3.json"));
  EXPECT_NE(of("uncased.txt"), of("uncased.json"));
  EXPECT_EQ(with_files("uncased.txt", {})->fingerprint(), of("uncased.txt"));
  EXPECT_NE(with_files("uncased.txt", {{"tokenizer_config.json", R"({"do_lower_case": false})"}})
                ->fingerprint(),
            of("uncased.txt"));
}

/// Opens `name` with the first `from` replaced.
std::string error_of_changed(const std::string& name, const std::string& from,
                             const std::string& to) {
  const TemporaryDirectory root;
  std::string text = golden_text("tokenizers/" + name);
  text.replace(text.find(from), from.size(), to);  // throws if it is missing
  const std::string path = root.path() + "/" + (name.ends_with(".json") ? "tokenizer.json" : name);
  spill(path, text);
  const Error error = tokenizer_error(path);
  EXPECT_TRUE(error.where().starts_with(path)) << error.where();
  EXPECT_FALSE(error.fix().empty());
  return error.message();
}

TEST(Tokenizer, WhatWouldChangeTokensIsRefused) {
  std::istringstream rows(
      read_file(CONCERTINA_SOURCE "/tests/io/readers/tokenizers.refused", 1 << 20));
  int count = 0;
  for (std::string row; std::getline(rows, row);) {
    if (row.starts_with('#')) continue;
    row = std::regex_replace(row, std::regex(R"(\\n)"), "\n");
    static const std::regex kBetween(R"( \| )");
    const std::vector<std::string> fields(
        std::sregex_token_iterator(row.begin(), row.end(), kBetween, -1), {});
    ASSERT_EQ(fields.size(), 4U) << row;
    expect_has(error_of_changed(fields[0], fields[1], fields[2]), fields[3]);
    ++count;
  }
  EXPECT_GT(count, 35);
}

TEST(Tokenizer, ANameIsAPathWhereAFolderHasIt) {
  const TemporaryDirectory root;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(root.path());
  for (const char* const folder : {"gpt2", "bytes"}) {
    EXPECT_FALSE(names_tokenizer_files(folder));
    std::filesystem::create_directory(folder);
    std::filesystem::copy(kTokenizers + "gpt2.json", folder + std::string("/tokenizer.json"));
  }
  EXPECT_TRUE(names_tokenizer_files("gpt2"));
  EXPECT_FALSE(names_tokenizer_files("bytes"));
  EXPECT_EQ(make_tokenizer("gpt2", "")->fingerprint(), golden("gpt2.json")->fingerprint());
  EXPECT_EQ(golden("bytes")->vocabulary(), 256);
  std::filesystem::current_path(before);
}

TEST(Tokenizer, BadChoicesAreNamed) {
  const TemporaryDirectory root;
  const auto expect = [](const std::string& choice, const char* part) {
    expect_has(tokenizer_error(choice).message(), part);
  };
  expect("words", "words");
  EXPECT_EQ(tokenizer_error("words").where(), "data.tokenizer");
  expect("./nowhere.json", "nowhere");
  expect(root.path(), "no tokenizer");
  std::filesystem::copy(kTokenizers + "gpt2/vocab.json", root.path());
  expect(root.path(), "merges.txt");
  spill(root.path() + "/a.model", "not a model");
  if (has_sentencepiece()) expect(root.path() + "/a.model", "SentencePiece");
  for (const char* name : {"gpt2", "llama3.json", "uncased.json"})
    EXPECT_ERROR(golden(name)->tokens("good \xff"), "invalid UTF-8 at byte 5");
}

}  // namespace
}  // namespace concertina
