// Tokenizers against Hugging Face's `tokenizers` and Google's `sentencepiece` on fuzzed text, and
// against bad files.
#include "io/tokenizers/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <sstream>

#include "core/error.h"
#include "io/file.h"
#include "io/tokenizers/bpe_trainer.h"
#include "io/tokenizers/sentencepiece_library.h"
#include "tests/io/io_test.h"
#include "tests/io/tokenizer_corpus.h"
#include "tests/io/tokenizer_hash.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

const std::string kGolden = CONCERTINA_SOURCE "/tests/golden/";
const std::string kFiles = kGolden + "tokenizers/";

const nlohmann::json& golden() {
  static const nlohmann::json parsed =
      nlohmann::json::parse(read_file(kGolden + "tokenizers.json", 1 << 24));
  return parsed;
}

class TokenizerGolden : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerGolden, NoTokenOfAMegabyteDiffers) {
  const std::string& name = GetParam();
  if (name.ends_with(".model") && !has_sentencepiece())
    GTEST_SKIP() << "built without libsentencepiece";
  const auto tokenizer = make_tokenizer(kFiles + name, "data.tokenizer");
  const std::size_t bytes =
      expect_chunks(*tokenizer, golden()[name], golden()["seed"].get<std::uint64_t>());
  EXPECT_GE(bytes, 1'000'000U);
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
    const auto theirs = nlohmann::json::parse(read_file(kFiles + name, 1 << 24));
    EXPECT_EQ(mine["model"]["vocab"], theirs["model"]["vocab"]) << name;
    EXPECT_EQ(mine["model"]["merges"], theirs["model"]["merges"]) << name;
    EXPECT_EQ(mine["added_tokens"], theirs["added_tokens"]) << name;
    EXPECT_EQ(mine["pre_tokenizer"], theirs["pre_tokenizer"]) << name;
    const TemporaryDirectory root;
    spill(root.path() + "/tokenizer.json", mine.dump());
    const std::string sample = tokenizer_corpus::chunk(6, 0);
    if (name != "llama3.json") {
      EXPECT_EQ(make_tokenizer(root.path(), "")->tokens(sample),
                make_tokenizer(kFiles + name, "")->tokens(sample));
    }
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
    const auto tokenizer = make_tokenizer(kFiles + name, "");
    for (std::uint64_t i = 0; i < 50; ++i) {
      const std::string text = tokenizer_corpus::chunk(3, i);
      EXPECT_EQ(tokenizer->decode(tokenizer->tokens(text)), text);
    }
  }
}

TEST(Tokenizer, CutsChangeNoToken) {
  for (const char* name :
       {"bytes", "gpt2", "gpt2_prefix.json", "llama3.json", "uncased.json", "cased.json"}) {
    const auto tokenizer =
        make_tokenizer(std::string_view(name) == "bytes" ? name : kFiles + name, "");
    int cuts = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      std::string text = tokenizer_corpus::chunk(4, i);
      for (std::size_t at = 30; at < text.size(); at += 61)  // lines, wherever they fall
        if (static_cast<unsigned char>(text[at]) < 0x80) text[at] = '\n';
      cuts += expect_cuts(*tokenizer, text, 97);
    }
    EXPECT_GT(cuts, 100) << name;
  }
}

TEST(Tokenizer, APrefixSpaceStandsBeforeEachStretchThatHasNone) {
  const auto tokenizer = make_tokenizer(kFiles + "gpt2_prefix.json", "");
  const auto text = [&](std::string_view of) { return tokenizer->decode(tokenizer->tokens(of)); };
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("the"), " the");
  EXPECT_EQ(text(" the"), " the");
  EXPECT_EQ(text("\n"), " \n");
  EXPECT_EQ(text("the<|endoftext|>the<|endoftext|><|endoftext|> the"),
            " the<|endoftext|> the<|endoftext|><|endoftext|> the");
  EXPECT_EQ(tokenizer->cut("one line\nno\u00e9 space  \x01 a end", 4), 24U);
  // The two files of GPT-2 say it in a third.
  const TemporaryDirectory root;
  std::filesystem::copy(kFiles + "gpt2", root.path() + "/gpt2");
  const auto without = make_tokenizer(root.path() + "/gpt2", "");
  spill(root.path() + "/gpt2/tokenizer_config.json", R"({"add_prefix_space": true})");
  const auto with = make_tokenizer(root.path() + "/gpt2", "");
  EXPECT_EQ(with->tokens("the the"), without->tokens(" the the"));
  EXPECT_NE(with->fingerprint(), without->fingerprint());
}

TEST(Tokenizer, LongRunsOfOneKindAreWords) {
  for (const char* name : {"gpt2", "llama3.json", "uncased.json"}) {
    const auto tokenizer = make_tokenizer(kFiles + name, "");
    for (const char* unit : {" ", "a", "7", "!", "\n", "\xe4\xb8\xad", "e\xcc\x81"}) {
      std::string text;
      while (text.size() < 300'000) text += unit;
      const auto tokens = tokenizer->tokens(text);
      if (std::string_view(name) != "uncased.json") {
        EXPECT_EQ(tokenizer->decode(tokens), text) << name << " '" << unit << "'";
      }
    }
  }
}

TEST(Tokenizer, SpecialTokensAreTheirOwn) {
  const auto bert = make_tokenizer(kFiles + "uncased.txt", "");
  EXPECT_EQ(bert->special(SpecialToken::padding), 0);
  EXPECT_EQ(bert->special(SpecialToken::unknown), 1);
  EXPECT_EQ(bert->special(SpecialToken::classify), 2);
  EXPECT_EQ(bert->special(SpecialToken::separate), 3);
  EXPECT_EQ(bert->special(SpecialToken::mask), 4);
  const auto gpt = make_tokenizer(kFiles + "gpt2", "");
  EXPECT_EQ(gpt->special(SpecialToken::end), 0);
  EXPECT_EQ(gpt->tokens("a<|endoftext|>a")[1], 0);
  EXPECT_EQ(gpt->special(SpecialToken::mask), std::nullopt);
  EXPECT_EQ(make_tokenizer("bytes", "")->special(SpecialToken::end), std::nullopt);
}

Error tokenizer_error(const std::string& choice) {
  try {
    make_tokenizer(choice, "data.tokenizer");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return error;
  }
  ADD_FAILURE() << choice << " was accepted";
  return {Exit::failure, "", "", ""};
}

/// A folder with GPT-2's two files, whose vocabulary has "Ġthe" and "Ġand", and `others`.
std::shared_ptr<const Tokenizer> with_files(const std::map<std::string, std::string>& others,
                                            const std::string& of = "gpt2") {
  const TemporaryDirectory root;
  const std::string folder = root.path() + "/t";
  if (std::filesystem::is_directory(kFiles + of)) {
    std::filesystem::copy(kFiles + of, folder);
  } else {
    std::filesystem::create_directory(folder);
    std::filesystem::copy(kFiles + of,
                          folder + (of.ends_with(".json") ? "/tokenizer.json" : "/vocab.txt"));
  }
  for (const auto& [name, text] : others) spill(folder + "/" + name, text);
  return make_tokenizer(folder, "");
}

TEST(Tokenizer, FilesBesideItDecideSpecialTokens) {
  const std::vector<std::pair<SpecialToken, std::string>> roles{
      {SpecialToken::unknown, "unk_token"},  {SpecialToken::begin, "bos_token"},
      {SpecialToken::end, "eos_token"},      {SpecialToken::classify, "cls_token"},
      {SpecialToken::separate, "sep_token"}, {SpecialToken::padding, "pad_token"},
      {SpecialToken::mask, "mask_token"}};
  for (const std::string of : {"gpt2", "gpt2.json", "llama3.json", "uncased.txt", "cased.json"}) {
    const auto plain = with_files({}, of);
    const std::int32_t id = 300;
    const std::string name = plain->name(id), quoted = nlohmann::json(name).dump();
    const auto count = static_cast<std::int32_t>(plain->vocabulary());
    for (const auto& [role, key] : roles) {
      SCOPED_TRACE(of + " " + key);
      const auto special = [&](const std::string& file, const std::string& value) {
        return with_files({{file, "{\"" + key + "\": " + value + "}"}}, of)->special(role);
      };
      EXPECT_EQ(special("tokenizer_config.json", quoted), id);
      EXPECT_EQ(special("tokenizer_config.json", R"({"content": )" + quoted + "}"), id);
      EXPECT_EQ(special("tokenizer_config.json", "null"), std::nullopt);
      EXPECT_EQ(special("special_tokens_map.json", quoted), id);
      // A name that the vocabulary lacks is a token more, as transformers has it.
      EXPECT_EQ(special("tokenizer_config.json", R"("<new>")"), count);
      const auto said = [&](const std::string& text) {
        return with_files({{"generation_config.json", text}}, of)->special(role);
      };
      EXPECT_EQ(said("{\"" + key + "_id\": [300, 5]}"), id);
      EXPECT_EQ(said("{\"" + key + "_id\": 300}"), id);
      EXPECT_EQ(said("{\"" + key + "_id\": 4000000}"), plain->special(role));
      // The second file goes before the first, but where the first has all tokens.
      const std::string first = "{\"" + key + "\": \"<new>\"",
                        second = "{\"" + key + "\": " + quoted + "}";
      const auto both = [&](const std::string& rest) {
        return with_files(
                   {{"tokenizer_config.json", first + rest}, {"special_tokens_map.json", second}},
                   of)
            ->special(role);
      };
      EXPECT_EQ(both("}"), id);
      EXPECT_EQ(both(R"(, "added_tokens_decoder": {}})"), count);
    }
    // It stands in texts as itself.
    const auto ends = with_files({{"tokenizer_config.json", R"({"eos_token": "<new>"})"}}, of);
    EXPECT_EQ(ends->vocabulary(), count + 1);
    EXPECT_EQ(ends->tokens("a<new>").back(), count);
    EXPECT_NE(ends->fingerprint(), plain->fingerprint());
    EXPECT_EQ(with_files({{"tokenizer_config.json", "{}"}}, of)->fingerprint(),
              plain->fingerprint());
    EXPECT_THROW(with_files({{"tokenizer_config.json", R"({"eos_token": 5})"}}, of), Error);
  }
  const auto more = with_files({{"added_tokens.json", R"({"<a>": 1001, "<b>": 1000})"}});
  EXPECT_EQ(more->tokens("<a><b>"), (std::vector<std::int32_t>{1001, 1000}));
}

TEST(Tokenizer, APieceOfSentencePieceHasItsName) {
  if (!has_sentencepiece()) GTEST_SKIP() << "no libsentencepiece";
  for (const char* file : {"small_bpe.model", "small_unigram.model"}) {
    const auto tokenizer = make_tokenizer(kFiles + file, "");
    EXPECT_EQ(tokenizer->name(*tokenizer->special(SpecialToken::unknown)), "<unk>");
    // As Mistral names the versions of its file.
    const TemporaryDirectory root;
    std::filesystem::copy(kFiles + file, root.path() + "/tokenizer.model.v3");
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
    EXPECT_NE(tokenizer_error(root.path() + "/" + name).message().find("Git LFS"),
              std::string::npos)
        << name;
  }
}

// As `tokenizers` has it: "xa" begins first, but what is not normalized is looked for before it.
TEST(Tokenizer, AddedTokensThatAreNotNormalizedAreFoundFirst) {
  const TemporaryDirectory root;
  std::string text = read_file(kFiles + "gpt2.json", 1 << 24);
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
  const auto of = [](const std::string& name) {
    return make_tokenizer(kFiles + name, "")->fingerprint();
  };
  EXPECT_EQ(of("gpt2"), of("gpt2/vocab.json"));
  EXPECT_NE(of("gpt2"), of("llama3.json"));
  EXPECT_NE(of("uncased.txt"), of("uncased.json"));
  const TemporaryDirectory root;
  const std::string folder = root.path() + "/cased";
  std::filesystem::create_directory(folder);
  std::filesystem::copy(kFiles + "uncased.txt", folder + "/vocab.txt");
  EXPECT_EQ(make_tokenizer(folder, "")->fingerprint(), of("uncased.txt"));
  spill(folder + "/tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_NE(make_tokenizer(folder, "")->fingerprint(), of("uncased.txt"));
}

/// `name` with the first `from` replaced, opened.
std::string error_of_changed(const std::string& name, const std::string& from,
                             const std::string& to) {
  const TemporaryDirectory root;
  std::string text = read_file(kFiles + name, 1 << 24);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
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
    const std::string error = error_of_changed(fields[0], fields[1], fields[2]);
    EXPECT_TRUE(contains(error, fields[3])) << row << "\n" << error;
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
    std::filesystem::copy(kFiles + "gpt2.json", folder + std::string("/tokenizer.json"));
  }
  EXPECT_TRUE(names_tokenizer_files("gpt2"));
  EXPECT_FALSE(names_tokenizer_files("bytes"));
  EXPECT_EQ(make_tokenizer("gpt2", "")->fingerprint(),
            make_tokenizer(kFiles + "gpt2.json", "")->fingerprint());
  EXPECT_EQ(make_tokenizer("bytes", "")->vocabulary(), 256);
  std::filesystem::current_path(before);
}

TEST(Tokenizer, BadChoicesAreNamed) {
  EXPECT_NE(tokenizer_error("words").message().find("words"), std::string::npos);
  EXPECT_EQ(tokenizer_error("words").where(), "data.tokenizer");
  EXPECT_NE(tokenizer_error("./nowhere.json").message().find("nowhere"), std::string::npos);
  const TemporaryDirectory root;
  EXPECT_NE(tokenizer_error(root.path()).message().find("no tokenizer"), std::string::npos);
  std::filesystem::copy(kFiles + "gpt2/vocab.json", root.path());
  EXPECT_NE(tokenizer_error(root.path()).message().find("merges.txt"), std::string::npos);
  spill(root.path() + "/a.model", "not a model");
  if (has_sentencepiece()) {
    EXPECT_NE(tokenizer_error(root.path() + "/a.model").message().find("SentencePiece"),
              std::string::npos);
  }
  for (const char* name : {"gpt2", "llama3.json", "uncased.json"}) {
    try {
      make_tokenizer(kFiles + name, "")->tokens("good \xff");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("bytes from 5 on"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace concertina
