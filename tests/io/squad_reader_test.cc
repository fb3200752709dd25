// Questions with answers in a text, and how answers are scored.
#include <gtest/gtest.h>

#include <array>

#include "io/labelled/questions.h"
#include "io/squad_score.h"
#include "tests/io/reader_files.h"

namespace concertina {
namespace {

TEST(Squad, TheAnswerStandsWhereTheSampleSays) {
  const Squad folder;
  const auto dataset = open_dataset(folder.options);
  ASSERT_EQ(dataset->samples(Split::train), 1U);
  const QuestionAnswers* const asked = dataset->questions();
  ASSERT_NE(asked, nullptr);
  const ReadSample sample = sample_of(*dataset, {});
  const std::int32_t start = sample.of.at("start")[0], end = sample.of.at("end")[0];
  std::string text;
  for (std::int32_t i = start; i <= end; ++i)
    text += static_cast<char>(sample.of.at("tokens")[static_cast<std::size_t>(i)]);
  EXPECT_EQ(text, "river Rhine");
  EXPECT_EQ(asked->text(Split::train, 0, start, end), "river Rhine");
  EXPECT_EQ(asked->answers(Split::train, 0)[0], "river Rhine");
  EXPECT_EQ(asked->text(Split::train, 0, 0, 0), "") << "no place in the text";
  EXPECT_EQ(asked->text(Split::train, 0, end, start), "");
  // [CLS] What? [SEP]: the rest is the text.
  EXPECT_EQ(sample.of.at("types")[6], 0);
  EXPECT_EQ(sample.of.at("types")[7], 1);
}

TEST(Squad, AWindowWithoutTheAnswerSaysSoAndOneWindowAnswers) {
  Squad folder;
  folder("s.json", R"({"data": [{"paragraphs": [{"context": ")" + std::string(100, 'x') +
                       R"( end", "qas": [{"question": "Where?", "answers": [{"text": "end", )"
                       R"("answer_start": 101}]}]}]}]})");
  folder.options.options["stride"] = 20;
  const auto dataset = open_dataset(folder.options);
  const QuestionAnswers& asked = *dataset->questions();
  // 104 tokens, 59 fit: [0, 59), [20, 79), [40, 99), [60, 104).
  ASSERT_EQ(dataset->samples(Split::train), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const ReadSample sample = sample_of(*dataset, {.sample = i});
    EXPECT_EQ(sample.of.at("start")[0] > 0, i == 3);
    EXPECT_EQ(asked.question(Split::train, i), 0U);
  }
  // Token 50 of the text is in three windows; [20, 79) has the most around it.
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(asked
                  .text(Split::train, i, 8 + 50 - 20 * static_cast<int>(i),
                        8 + 50 - 20 * static_cast<int>(i))
                  .empty(),
              i != 1);
}

TEST(Squad, LiesAreNamed) {
  const Squad folder;
  const auto refused = [&](const std::string& json, const std::string& what) {
    folder("s.json", json);
    EXPECT_ERROR(open_dataset(folder.options), what);
    EXPECT_ERROR(open_dataset(folder.options), "s.json");
  };
  const std::string place = "data[0].paragraphs[0].qas[0].answers[0]";
  refused(squad_json("river Rhine", 17), place);  // counted in bytes
  refused(squad_json("river Rhine", 17), "does not have the answer 'river Rhine'");
  refused(squad_json("river", 4000), place);
  refused(squad_json("", 3), place);
  refused(squad_json("river", -1), "'answer_start' is -1, not a whole number from 0 on");
  refused(squad_json("river Rhine", 15, ", {}"), "answers[1]");
  refused("{\"data\": [\n{\"paragraphs\": 3}]}", "data[0]");
  refused("{\"data\": [\n{\"paragraphs\": [}]}", "line 2");
  refused("{\"data\": [], \"data\": []}", "the key 'data' is there twice");
  refused("{\"version\": 1e400, \"data\": []}", "a number is too large");
  refused(std::string(5000, '['), "nested 101 deep");
  refused(
      R"({"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "", "answers": []}]}]}]})",
      "no answer");
}

/// By evaluate-v1.1.py's own rules, worked out by hand.
TEST(SquadScore, NormalizesAndScoresAsTheOfficialScript) {
  EXPECT_EQ(normalize_answer("  The  Köln-Bonn, An (area)  "), "kölnbonn area");
  EXPECT_EQ(normalize_answer("theatre a.b ÜBER\u00a0x"), "theatre ab über x");
  EXPECT_EQ(normalize_answer("a\u2019s"), "\u2019s") << "an article before what is no letter";
  EXPECT_EQ(normalize_answer("The A an"), "");
  const std::vector<std::string> answers{"the Denver Broncos", "Carolina"};
  const auto expect = [&](const std::string& prediction, double exact, double f1) {
    const AnswerScore score = score_answer(prediction, answers);
    EXPECT_DOUBLE_EQ(score.exact, exact) << prediction;
    EXPECT_DOUBLE_EQ(score.f1, f1) << prediction;
  };
  expect("Denver Broncos.", 1, 1);
  expect("Denver", 0, 2.0 / 3);
  expect("Denver Denver Broncos", 0, 0.8);  // 2 of 3, 2 of 2
  expect("carolina panthers of the south", 0, 0.4);
  expect("", 0, 0);
  EXPECT_DOUBLE_EQ(score_answer("the", std::vector<std::string>{"a"}).exact, 1);
  EXPECT_DOUBLE_EQ(score_answer("the", std::vector<std::string>{"a"}).f1, 0);  // as the script
  EXPECT_DOUBLE_EQ(score_answer("x", {}).exact, 0);
}

}  // namespace
}  // namespace concertina
