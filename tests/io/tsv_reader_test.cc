// Sentences and labels in columns of text.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "io/datasets/sentences.h"
#include "io/datasets/source.h"
#include "tests/io/reader_files.h"

namespace concertina {
namespace {

TEST(Tsv, ASentenceStandsBetweenItsMarks) {
  const Tsv folder;
  const auto dataset = open_dataset(folder.options);
  const SentenceEncoder marks(nullptr);
  const std::int32_t cls = marks.classify(), sep = marks.separator(), pad = marks.padding();
  EXPECT_EQ(dataset->vocabulary(), 260);
  EXPECT_EQ(dataset->samples(Split::train), 3U);
  ASSERT_EQ(dataset->classes().size(), 2U);
  const ReadSample bad = sample_of(*dataset, {.sample = 1});
  EXPECT_EQ(bad.of.at("tokens"),
            (std::vector<std::int32_t>{cls, 'b', 'a', 'd', ' ', sep, pad, pad}));
  EXPECT_EQ(bad.of.at("types"), std::vector<std::int32_t>(8, 0));
  EXPECT_EQ(bad.of.at("lengths")[0], 6);
  EXPECT_EQ(bad.of.at("label")[0], 0);
  const ReadSample cut = sample_of(*dataset, {.sample = 2});
  EXPECT_EQ(cut.of.at("tokens"),
            (std::vector<std::int32_t>{cls, 'v', 'e', 'r', 'y', ',', ' ', sep}));
  EXPECT_EQ(cut.of.at("lengths")[0], 8);
}

TEST(Tsv, ATokenizerOfRunningTextNeedsNoOtherMarks) {
  const Tsv folder;
  DataOptions options = folder.options;
  options.tokenizer = make_tokenizer(CONCERTINA_SOURCE "/tests/golden/tokenizers/gpt2.json", "");
  const auto dataset = open_dataset(options);
  EXPECT_EQ(dataset->vocabulary(), options.tokenizer->vocabulary());
  const std::int32_t end = *options.tokenizer->special(SpecialToken::end);
  const ReadSample sample = sample_of(*dataset, {.sample = 1});
  const std::vector<std::int32_t>& tokens = sample.of.at("tokens");
  const auto length = static_cast<std::size_t>(sample.of.at("lengths")[0]);
  EXPECT_EQ(tokens[0], end);
  EXPECT_EQ(tokens[length - 1], end);
  for (std::size_t i = length; i < tokens.size(); ++i) EXPECT_NE(tokens[i], end);
}

TEST(Tsv, PairsAreCutFromTheLongerAndLabelsMayBeNames) {
  const Tsv folder;
  folder("a.tsv", "idx\tsentence1\tlabel\tsentence2\r\n0\tabcdef\tno\txy\r\n1\tab\tyes\tc");
  DataOptions options = folder.options;
  options.tokens_per_sample = 9;
  const auto dataset = open_dataset(options);
  const SentenceEncoder marks(nullptr);
  const std::int32_t cls = marks.classify(), sep = marks.separator(), pad = marks.padding();
  EXPECT_EQ(std::vector(dataset->classes().begin(), dataset->classes().end()),
            (std::vector<std::string>{"no", "yes"}));
  const ReadSample cut = sample_of(*dataset, {.sample = 0});
  EXPECT_EQ(cut.of.at("tokens"),
            (std::vector<std::int32_t>{cls, 'a', 'b', 'c', 'd', sep, 'x', 'y', sep}));
  EXPECT_EQ(cut.of.at("types"), (std::vector<std::int32_t>{0, 0, 0, 0, 0, 0, 1, 1, 1}));
  const ReadSample whole = sample_of(*dataset, {.sample = 1});
  EXPECT_EQ(whole.of.at("tokens"),
            (std::vector<std::int32_t>{cls, 'a', 'b', sep, 'c', sep, pad, pad, pad}));
  EXPECT_EQ(whole.of.at("types"), (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(whole.of.at("label")[0], 1);
  std::vector<std::int32_t> a(7), b(7);
  truncate_pair(a, b, 5);
  EXPECT_EQ(a.size(), 3U);  // b first where both are as long
  EXPECT_EQ(b.size(), 2U);
}

TEST(Tsv, LiesAreNamed) {
  const Tsv folder;
  const auto refused = [&](const std::string& text, const std::string& where,
                           const std::string& what) {
    folder("a.tsv", text);
    EXPECT_ERROR(open_dataset(folder.options), what);
    EXPECT_ERROR(open_dataset(folder.options), where);
  };
  refused("good\t1\nbad\t0\n", "a.tsv:1", "no column is known to be the sentence");
  refused("\xff\xfes\0e\0", "a.tsv:1", "the file begins as UTF-16 does");
  refused("sentence\tlabel\tsentence\n", "a.tsv:1", "there twice");
  refused("sentence\ttext\tlabel\n", "a.tsv:1", "both 'sentence' and 'text' may be the sentence");
  refused("sentence\tlabel\tscore\n", "a.tsv:1", "both 'label' and 'score' may be the label");
  refused("sentence\n", "a.tsv:1", "no column is called 'label'");
  refused("label\n", "a.tsv:1", "no column is known to be the sentence");
  refused("sentence\tlabel\na\t1\nb\n", "a.tsv:3", "1 columns where the first line has 2");
  refused("sentence\tlabel\na\t1\n\nb\t0\n", "a.tsv:3", "1 columns");
  refused("sentence\tlabel\na\t1\nb\t\n", "a.tsv:3", "the label is empty");
  refused("sentence\tlabel\na\t1\nb\t0\nc\t7\n", "a.tsv:4", "label 7 is out of range");
  refused("sentence\tlabel\na\t1\nb\tO\n", "a.tsv:3", "the label 'O' is no number");
  refused("sentence\tlabel\na\tgood\nb\t0\n", "a.tsv:3", "the label '0' is a number");
  refused("sentence\tlabel\na\t1\nb\t2.5\n", "a.tsv:3", "the label '2.5' is a score, not a class");
  refused("sentence\tlabel\n", "data.files", "no sample is left");
  refused("", "data.files", "is empty");
}

TEST(Tsv, ClassesThatAreHeldOutAloneAreRefused) {
  Tsv folder;
  folder("a.tsv", "sentence\tlabel\na\tbad\nb\tgood\n");
  folder.options.validation_files = {folder("b.tsv", "sentence\tlabel\na\tbad\nb\tfine\n")};
  EXPECT_ERROR(open_dataset(folder.options), "b.tsv:3");
  EXPECT_ERROR(open_dataset(folder.options), "'fine' is that of no row of data.files");
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

/// Samples come again in each epoch, in another order, the same after a resume.
TEST(Tsv, EpochsHaveTheSameSamplesAndTheLastBatchIsBlankAtItsEnd) {
  Tsv folder;
  folder.options.validation_files = {folder.file};
  folder.options.most_overlap = 1;
  const auto dataset = open_dataset(folder.options);
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

}  // namespace
}  // namespace concertina
