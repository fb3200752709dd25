// tokenizer.json in the forms published for well-known models, compared with Hugging Face's
// `tokenizers`: tests/golden/make_tokenizer_families.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/datasets/sentences.h"
#include "io/file.h"
#include "io/tokenizers/characters/library_characters.h"
#include "io/tokenizers/published_tokenizer.h"
#include "io/tokenizers/tokenizer.h"
#include "tests/io/io_test.h"
#include "tests/io/tokenizer_corpus.h"
#include "tests/io/tokenizer_hash.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

const std::string kFamilies = kTokenizers + "families/";

const nlohmann::json& expected() {
  static const auto kParsed = nlohmann::json::parse(golden_text("tokenizer_families.json"));
  return kParsed;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : expected().items())
    if (value.is_object()) names.push_back(name);
  return names;
}

std::shared_ptr<const Tokenizer> family(const std::string& name) {
  return make_tokenizer(kFamilies + name + ".json", "data.tokenizer");
}

class TokenizerFamily : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerFamily, NoTokenDiffers) {
  const auto tokenizer = family(GetParam());
  const nlohmann::json& wanted = expected()[GetParam()];
  expect_chunks(*tokenizer, wanted["chunks"], expected()["seed"].get<std::uint64_t>());
  for (const nlohmann::json& row : wanted["texts"]) {
    const auto tokens = tokenizer->tokens(row[0].get<std::string>());
    EXPECT_EQ(tokens, row[1].get<std::vector<std::int32_t>>()) << row[0];
    EXPECT_EQ(tokenizer->decode(tokens), row[2]) << row[0];
  }
}

TEST_P(TokenizerFamily, CutsChangeNoToken) {
  const auto tokenizer = family(GetParam());
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < 12; ++i) texts.push_back(tokenizer_corpus::chunk(4, i));
  std::string special;
  for (const nlohmann::json& row : expected()[GetParam()]["texts"])
    special += row[0].get<std::string>() + "\n" + row[0].get<std::string>() + " ";
  texts.push_back(special);
  for (const std::string& text : texts) expect_cuts(*tokenizer, text, 37);
}

/// The special tokens that `tokenizers` puts around one text and two.
TEST_P(TokenizerFamily, SentencesStandBetweenItsMarks) {
  const auto tokenizer = family(GetParam());
  const SentenceEncoder encoder(tokenizer);
  if (tokenizer->marks() == nullptr) {
    EXPECT_EQ(expected()[GetParam()]["around"]["single"]["ids"],
              nlohmann::json(tokenizer->tokens("the")));
    return;
  }
  for (const bool pair : {false, true}) {
    const nlohmann::json& around = expected()[GetParam()]["around"][pair ? "pair" : "single"];
    auto ids = around["ids"].get<std::vector<std::int32_t>>();
    const auto used = static_cast<std::int64_t>(ids.size());
    auto type_ids = around["types"].get<std::vector<std::int32_t>>();
    ids.resize(ids.size() + 3, encoder.padding());
    type_ids.resize(ids.size(), 0);
    std::vector<std::int32_t> tokens(ids.size(), -1), types(ids.size(), -1);
    std::int32_t length = 0;
    const auto a = tokenizer->tokens("the"), b = tokenizer->tokens("of and");
    write_sentences(encoder, a, b, pair, std::ssize(tokens),
                    {tokens.data(), tokens.size(), DType::i32},
                    {types.data(), types.size(), DType::i32}, {&length, 1, DType::i32});
    EXPECT_EQ(tokens, ids);
    EXPECT_EQ(types, type_ids);
    EXPECT_EQ(length, used);
    const std::int64_t before = encoder.marks_before(pair) + (pair ? std::ssize(a) : 0);
    EXPECT_EQ(tokens[static_cast<std::size_t>(before)], (pair ? b : a)[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerFamily, testing::ValuesIn(family_names()),
                         [](const auto& tested) { return tested.param; });

TEST(TokenizerFamilies, RobertaHasTwoSeparatorsAndItsOwnPadding) {
  const SentenceEncoder encoder(family("roberta"));
  std::vector<std::int32_t> marks;
  for (const Marks::Part& part : encoder.parts(true)) {
    marks.push_back(part.text < 0 ? part.token : -1);
    EXPECT_EQ(part.type, 0);
  }
  EXPECT_EQ(marks, (std::vector<std::int32_t>{0, -1, 2, 2, -1, 2}));
  EXPECT_EQ(encoder.padding(), 1);
  EXPECT_EQ(encoder.marks(true), 4);
  EXPECT_TRUE(encoder.is_mark(4));  // <mask>
  EXPECT_FALSE(encoder.is_mark(5));
}

TEST(TokenizerFamilies, OldFilesDoNotNameTheirModel) {
  for (const std::string name : {"roberta", "minilm", "t5"}) {
    const TemporaryDirectory root;
    auto file = nlohmann::json::parse(golden_text("tokenizers/families/" + name + ".json"));
    file["model"].erase("type");
    spill(root.path() + "/tokenizer.json", file.dump());
    const std::string text = tokenizer_corpus::chunk(7, 0);
    EXPECT_EQ(make_tokenizer(root.path(), "")->tokens(text), family(name)->tokens(text));
  }
}

TEST(TokenizerFamilies, OfAFolderWithSeveralFilesTheSupportedOneIsRead) {
  const TemporaryDirectory root;
  const std::string gpt2 = kTokenizers + "gpt2/";
  std::filesystem::copy(gpt2, root.path());
  std::filesystem::copy(kFamilies + "roberta.json", root.path() + "/tokenizer.json");
  EXPECT_EQ(make_tokenizer(root.path(), "")->fingerprint(), family("roberta")->fingerprint());
  std::string text = golden_text("tokenizers/families/roberta.json");
  text.replace(text.find("RobertaProcessing"), 7, "Alberta");
  spill(root.path() + "/tokenizer.json", text);
  EXPECT_EQ(make_tokenizer(root.path(), "")->fingerprint(),
            make_tokenizer(gpt2, "")->fingerprint());
  EXPECT_THROW(make_tokenizer(root.path() + "/tokenizer.json", ""), Error);  // explicitly requested
}

// Some characters are newer than its tables: there, U+2E45 (Unicode 10) is not punctuation and
// U+0898 (14) not an accent; but U+A7DC (16) has a lowercase letter, and U+31350 (15) is a letter.
TEST(TokenizerFamilies, NewCharactersAreWhatTheyAreThere) {
  EXPECT_TRUE(is_library_punctuation(0x2E42));
  EXPECT_FALSE(is_library_punctuation(0x2E45));
  EXPECT_TRUE(is_library_non_spacing(0x301));
  EXPECT_FALSE(is_library_non_spacing(0x898));
  EXPECT_EQ(library_lower("\uA7DC\u0130A"), "\u019Bi\u0307a");
  EXPECT_EQ(library_normal_form("e\u0301\u0898", "NFC"), "\u00E9\u0898");
  EXPECT_EQ(library_normal_form("a\u0345\u0301", "NFD"), "a\u0301\u0345");
  EXPECT_EQ(library_normal_form("a\u0345\u0898", "NFD"), "a\u0345\u0898");
  expect_has(newer_characters("L"), "31350");
}

/// Creates a folder with `files`.
void write_files(const std::string& folder, const FileTexts& files) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] : files) atomic_replace(folder + "/" + name, text);
}

TEST(PublishedTokenizer, ADescriptionThatIsMadeGivesTheSameTokens) {
  const TemporaryDirectory root;
  write_files(root.path() + "/cased", {{"vocab.txt", golden_text("tokenizers/uncased.txt")},
                                       {"tokenizer_config.json", R"({"do_lower_case": false})"}});
  for (const std::string& choice : {std::string(kBytesTokenizer), kTokenizers + "gpt2",
                                    kTokenizers + "uncased.txt", root.path() + "/cased"}) {
    FileTexts files = tokenizer_files(choice, "data.tokenizer");
    const auto described = make_description(choice, choice);
    ASSERT_TRUE(described) << choice;
    write_files(root.path() + "/made", {{kTokenizerJson, *described}});
    const auto before = make_tokenizer(choice, "data.tokenizer");
    const auto after = make_tokenizer(root.path() + "/made", "data.tokenizer");
    EXPECT_EQ(before->vocabulary(), after->vocabulary()) << choice;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::string text = tokenizer_corpus::chunk(11, i);
      ASSERT_EQ(before->tokens(text), after->tokens(text)) << choice << ", chunk " << i;
    }
    // The files stored in a run give the same tokenizer.
    if (files.empty()) continue;
    write_files(root.path() + "/kept", files);
    EXPECT_EQ(make_tokenizer(root.path() + "/kept", "data.tokenizer")->fingerprint(),
              before->fingerprint());
    std::filesystem::remove_all(root.path() + "/kept");
  }
}

TEST(PublishedTokenizer, MarksOfARunAreWrittenToTheDescription) {
  const TemporaryDirectory root;
  const SentenceEncoder encoder(nullptr, /*masks=*/true);
  const Marks around{.single = {encoder.parts(false).begin(), encoder.parts(false).end()},
                     .pair = {encoder.parts(true).begin(), encoder.parts(true).end()}};
  const std::map<std::int32_t, std::string> names{
      {256, "[CLS]"}, {257, "[SEP]"}, {258, "[MASK]"}, {259, "[PAD]"}};
  const auto description = make_description("bytes", "bytes");
  write_files(root.path(),
              {{kTokenizerJson, with_marks(*description, names, 256, &around, "bytes")}});
  const auto made = make_tokenizer(root.path(), "data.tokenizer");
  EXPECT_EQ(made->vocabulary(), 260);
  EXPECT_EQ(made->special(SpecialToken::mask), 258);
  EXPECT_EQ(made->tokens("a[MASK]"), (std::vector<std::int32_t>{'a', 258}));
  const SentenceEncoder again(made, true);
  ASSERT_NE(made->marks(), nullptr);
  for (const bool pair : {false, true}) {
    ASSERT_EQ(again.parts(pair).size(), encoder.parts(pair).size());
    for (std::size_t i = 0; i < again.parts(pair).size(); ++i) {
      const Marks::Part &a = again.parts(pair)[i], &b = encoder.parts(pair)[i];
      EXPECT_EQ(std::tuple(a.text, a.token, a.type), std::tuple(b.text, b.token, b.type));
    }
  }
}

}  // namespace
}  // namespace concertina
