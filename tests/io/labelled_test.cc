// Tests of labelled tables and questions beyond reader_table_test.cc: published files, batches, and
// the scores of answers. tests/golden/make_tables.py made the golden files.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/model/batch.h"
#include "io/datasets/sentences.h"
#include "io/datasets/source.h"
#include "io/datasets/split_files.h"
#include "io/labelled/labelled_rows.h"
#include "io/labelled/questions.h"
#include "io/squad_score.h"
#include "io/tables/table.h"
#include "tests/io/reader_cases.h"

namespace concertina {
namespace {

nlohmann::json golden() {
  return nlohmann::json::parse(slurp(CONCERTINA_SOURCE "/tests/golden/tables.json"));
}

TEST(Table, FilesOfPandasAreReadAsPandasReadsThem) {
  const nlohmann::json files = golden()["pandas"];
  EXPECT_EQ(files.size(), 8U);
  for (const auto& [name, expected] : files.items()) {
    LabelledRows read({.format = name.substr(name.find('.') + 1)});
    read.read(CONCERTINA_SOURCE "/tests/golden/tables/" + name);
    ASSERT_EQ(read.rows().size(), expected.size()) << name;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(read.rows()[i].text[0], expected[i][0].get<std::string>()) << name << " " << i;
      EXPECT_EQ(read.rows()[i].label.text, expected[i][1].get<std::string>()) << name << " " << i;
    }
    expect_has(read.summary(), "columns     text; label: label; ignored: ");
  }
}

TEST(Table, TheTasksOfGlueAreReadAsTheyArePublished) {
  const Folder folder;
  const nlohmann::json tasks = golden()["glue"];
  EXPECT_EQ(tasks.size(), 9U);
  for (const auto& [name, task] : tasks.items()) {
    const std::string path = folder(name, task["file"].get<std::string>());
    LabelledRows read({.format = "tsv"});
    read.read(path);
    ASSERT_EQ(read.rows().size(), 1U) << name;
    EXPECT_EQ(read.is_pair(), task["texts"].size() == 2) << name;
    for (std::size_t i = 0; i < task["texts"].size(); ++i)
      EXPECT_EQ(read.rows()[0].text[i], task["texts"][i].get<std::string>()) << name;
    EXPECT_EQ(read.rows()[0].label.text, task["label"].get<std::string>()) << name;
    EXPECT_EQ(read.place_of(0), path + (name == "CoLA" ? ":1" : ":2"));
  }
}

TEST(Table, ReadersGoOnAfterARowThatIsBroken) {
  struct Broken {
    std::string format, text;
    const char* what;
    std::size_t line, rows_after;
  };
  const Folder folder;
  for (const auto& [format, text, what, line, rows_after] :
       {Broken{"tsv", "a\tb\n1\t2\n3\n4\t5\n", "1 columns, but the first line has 2", 3, 1},
        {"csv", "a,b\n\"1\n1\",2\n3\n4,5\n6,7\n", "1 columns, but the first line has 2", 4, 2},
        {"csv", "a,b\n1,2\n\"3\"x,\n4,5\n", "text after a closing quote", 3, 1},
        {"csv", "a,b\n1,2\n\"3,\n4,5\n", "unclosed quote", 3, 0},
        {"jsonl", "{\"a\": 1}\n{\"a\": }\n{\"a\": 2}\n", "invalid JSON at byte 7", 2, 1},
        {"jsonl", "{\"a\": 1}\n[1]\n{\"a\": 2}\n", "expected a JSON object", 2, 1}}) {
    const auto table = open_table(format, folder("t", text));
    RowCells row;
    ASSERT_TRUE(table->next(row));
    const Error error = thrown_by([&] { table->next(row); });
    expect_has(error.what(), what);
    expect_has(error.what(), fmt::format("t:{}", line));
    std::size_t rows = 0;
    while (table->next(row)) ++rows;
    EXPECT_EQ(rows, rows_after) << text;
  }
}

TEST(Table, DocumentsAreHeldOutWhole) {
  ReaderCase one = reader_case("Documents are held out whole");
  one.files[0].second.clear();
  for (int i = 0; i < 40; ++i)
    one.files[0].second += fmt::format(" \"{{\\\"text\\\": \\\"{}\\\"}}\\n\"", i % 20 + 100);
  const auto dataset = CaseFolder(one).open();
  std::map<std::string, std::set<Split>> splits;
  std::map<std::string, int> seen;
  for (const Split split : kAllSplits) {
    std::string text =
        answer_of(*dataset, fmt::format("{} text", kSplitNames[static_cast<int>(split)]));
    for (; text.size() > 4; text.erase(0, 5)) {  // "100\n", with its line break as 2 characters
      splits[text.substr(0, 3)].insert(split);
      ++seen[text.substr(0, 3)];
      EXPECT_EQ(text.substr(3, 2), "\\n");
    }
    EXPECT_EQ(text, "");
  }
  EXPECT_EQ(seen.size(), 20U);
  for (const auto& [word, count] : seen) EXPECT_EQ(count, 2) << word;
  for (const auto& [word, in] : splits) EXPECT_EQ(in.size(), 1U) << word;  // kept together
  ASSERT_NE(dataset->splits(), nullptr);
  EXPECT_EQ(dataset->splits()->sizes, (std::array<std::uint64_t, 3>{20, 10, 10}));
}

TEST(Tsv, ThePublishedFilesAreRead) {
  const std::string folder = data_at_hand("sst2");
  if (folder.empty()) GTEST_SKIP() << "no SST-2 here";
  const auto dataset = open_dataset({.format = "tsv",
                                     .files = {folder + "/train.tsv"},
                                     .validation_files = {folder + "/dev.tsv"},
                                     .tokens_per_sample = 64});
  EXPECT_EQ(dataset->samples(Split::train), 67349U);
  EXPECT_EQ(dataset->samples(Split::validation), 872U);
  EXPECT_EQ(dataset->classes().size(), 2U);
  ValidationSource held(dataset, 100);
  EXPECT_EQ(held.targets(), 872);
  EXPECT_EQ(held.batches(), 9);
  EXPECT_EQ(held.samples(8), 72);
  EXPECT_EQ(held.valid_targets(8, 100), 72);
}

/// Samples are repeated in each epoch, in a different order, which is the same after a resume.
TEST(Tsv, EpochsHaveTheSameSamplesAndTheLastBatchIsBlankAtItsEnd) {
  Tsv folder;
  folder.options.validation_files = folder.options.files;
  folder.options.most_overlap = 1;
  const auto dataset = folder.open();
  TrainingSource source(dataset, 3, 2);
  EXPECT_EQ(source.samples_per_epoch(), 3U);
  EXPECT_EQ(source.valid_targets(5, 2), 2);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 3; ++i) seen.insert(source.place(epoch * 3 + i).sample);
    EXPECT_EQ(seen.size(), 3U);
  }
  ValidationSource held(dataset, 2);
  Buffer labels(2, DType::i32), lengths(2, DType::i32);
  held.load(1, 0, 2, std::array{View{}, View{}, lengths.view(), labels.view()});
  EXPECT_EQ(labels.view().i32()[0], 1);
  EXPECT_EQ(labels.view().i32()[1], kIgnored);
  EXPECT_EQ(lengths.view().i32()[1], 1);
}

/// Held-out parts are counted in targets: a sample with several may be cut.
TEST(TaggedWords, AreCountedInBatches) {
  const auto dataset = CaseFolder(reader_case("Sentences of one to three words")).open();
  ValidationSource source(dataset, 2, 4, Split::train);
  EXPECT_EQ(source.targets(), 4);
  EXPECT_EQ(source.batches(), 2);
  EXPECT_EQ(source.valid_targets(0, 2), 3);
  EXPECT_EQ(source.valid_targets(1, 2), 1);
}

TEST(Table, RowsWithoutLabelsHaveBatchesAndNoTargets) {
  const auto data = CaseFolder(reader_case("Rows to be evaluated may have no labels")).open();
  const ValidationSource source(data, 2, 0, Split::test);
  EXPECT_EQ(source.batches(), 2);
  EXPECT_EQ(source.targets(), 0);
}

TEST(Sentences, PairsOfOneLengthAreCutFromTheSecond) {
  std::vector<std::int32_t> a(7), b(7);
  truncate_pair(a, b, 5);
  EXPECT_EQ(a.size(), 3U);
  EXPECT_EQ(b.size(), 2U);
}

TEST(Squad, TheAnswerOfASpanIsItsText) {
  const Squad folder;
  const auto dataset = folder.open();
  const QuestionAnswers* const asked = dataset->questions();
  ASSERT_NE(asked, nullptr);
  const ReadSample sample = sample_of(*dataset, {});
  const std::int32_t start = sample.of.at("start")[0], end = sample.of.at("end")[0];
  EXPECT_EQ(asked->text(Split::train, 0, start, end), "river Rhine");
  EXPECT_EQ(asked->answers(Split::train, 0)[0], "river Rhine");
  EXPECT_EQ(asked->text(Split::train, 0, 0, 0), "") << "no place in the text";
  EXPECT_EQ(asked->text(Split::train, 0, end, start), "");
}

TEST(Squad, AWindowWithoutTheAnswerSaysSoAndOneWindowAnswers) {
  Squad folder;
  folder("s.json", R"({"data": [{"paragraphs": [{"context": ")" + std::string(100, 'x') +
                       R"( end", "qas": [{"question": "Where?", "answers": [{"text": "end", )"
                       R"("answer_start": 101}]}]}]}]})");
  folder.options.options["stride"] = 20;
  const auto dataset = folder.open();
  const QuestionAnswers& asked = *dataset->questions();
  // 104 tokens, 59 fit: [0, 59), [20, 79), [40, 99), [60, 104).
  ASSERT_EQ(dataset->samples(Split::train), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const ReadSample sample = sample_of(*dataset, {.sample = i});
    EXPECT_EQ(sample.of.at("start")[0] > 0, i == 3);
    EXPECT_EQ(asked.question(Split::train, i), 0U);
  }
  // Token 50 of the text is in three windows; it is farthest from the ends of [20, 79).
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(asked
                  .text(Split::train, i, 8 + 50 - 20 * static_cast<int>(i),
                        8 + 50 - 20 * static_cast<int>(i))
                  .empty(),
              i != 1);
}

/// Rules of evaluate-v1.1.py, computed by hand.
TEST(SquadScore, NormalizesAndScoresAsTheOfficialScript) {
  EXPECT_EQ(normalize_answer("  The  Köln-Bonn, An (area)  "), "kölnbonn area");
  EXPECT_EQ(normalize_answer("theatre a.b ÜBER\u00a0x"), "theatre ab über x");
  EXPECT_EQ(normalize_answer("a\u2019s"), "\u2019s") << "an article before a non-letter";
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
  EXPECT_DOUBLE_EQ(score_answer("the", std::vector<std::string>{"a"}).f1, 0);  // as in the script
  EXPECT_DOUBLE_EQ(score_answer("x", {}).exact, 0);
}

}  // namespace
}  // namespace concertina
