// Targets that are not one class: scores, several classes, a class for each word.
#include <gtest/gtest.h>

#include "io/datasets/sentences.h"
#include "io/datasets/source.h"
#include "tests/io/reader_files.h"

namespace concertina {
namespace {

struct Targets : Folder {
  DataOptions options;

  Targets(const std::string& format, TargetKind kind) {
    options.format = format;
    options.targets = kind;
    options.validation = 0;
    options.tokens_per_sample = 12;
  }
  std::shared_ptr<const Dataset> read(const std::string& content) {
    options.files = {(*this)("a." + options.format, content)};
    return open_dataset(options);
  }
  void refuses(const std::string& content, const std::string& what, int line) {
    EXPECT_ERROR(read(content), what);
    EXPECT_ERROR(read(content), fmt::format("a.{}:{}", options.format, line));
  }
};

std::vector<std::string> names_of(const Dataset& dataset) {
  return {dataset.classes().begin(), dataset.classes().end()};
}

TEST(Scores, AreThoseOfAColumn) {
  Targets tsv("tsv", TargetKind::scores);  // as GLUE publishes STS-B
  const auto dataset = tsv.read(
      "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
      "0\tm\tf\t2012\t1\tn\tn\tA plane.\tAn air plane.\t5.000\n"
      "1\tm\tf\t2012\t4\tn\tn\tA man \"plays.\tNobody.\t-3.8e-1\n");
  EXPECT_EQ(dataset->fields()[3], scores_field(1));
  EXPECT_EQ(dataset->targets(Split::train), 2);
  EXPECT_TRUE(dataset->classes().empty());
  EXPECT_EQ(sample_of(*dataset, {.sample = 0}).image, std::vector<float>{5});
  EXPECT_EQ(sample_of(*dataset, {.sample = 1}).image, std::vector<float>{-0.38F});
  EXPECT_EQ(sample_of(*dataset, {.sample = 1, .most = 0}).image, std::vector<float>{kNoScore});
}

TEST(Scores, MayBeSeveralInAList) {
  Targets json("jsonl", TargetKind::scores);
  const auto dataset = json.read(
      "{\"text\": \"a\", \"label\": [1, 0.5]}\n\n"
      "{\"text\": \"b\", \"label\": [-2, 3e1]}\n");
  EXPECT_EQ(dataset->fields()[3], scores_field(2));
  EXPECT_EQ(dataset->targets(Split::train), 4);
  EXPECT_EQ(sample_of(*dataset, {.sample = 1}).image, (std::vector<float>{-2, 30}));
  EXPECT_EQ(sample_of(*dataset, {.sample = 1, .most = 1}).image,
            (std::vector<float>{-2, kNoScore}));
  Targets csv("csv", TargetKind::scores);
  csv.options.options["label_separator"] = "|";
  EXPECT_EQ(sample_of(*csv.read("text,score\na,1 | 2\nb,3|4\n"), {.sample = 0}).image,
            (std::vector<float>{1, 2}));
}

TEST(Scores, ThatAreNoneAreRefused) {
  Targets csv("csv", TargetKind::scores);
  for (const char* wrong : {"nan", "-inf", "1e39", "3.4028235e38x", "high", "0x1", "-3.4028235e38"})
    csv.refuses(fmt::format("text,score\na,1\nb,{}\n", wrong), "is no finite number of 32 bits", 3);
  csv.refuses("text,score\na,1\nb,\n", "the score is missing", 3);
  csv.refuses("text,score\na,1\nb,\"1,2\"\n", "2 scores, where the first row has 1", 3);
  csv.refuses("text,score\na,1\nb,\"1,,2\"\n", "an entry of the list is empty", 3);
  Targets json("jsonl", TargetKind::scores);
  json.refuses("{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\"}\n", "the label is missing", 2);
  json.refuses("{\"text\": \"a\", \"label\": [[1]]}\n", "is no list of texts or numbers", 1);
  json.refuses("{\"text\": \"a\", \"label\": {\"b\": 1}}\n", "is no list of texts or numbers", 1);
}

TEST(LabelSets, AreOneOrNoneOrSeveralClasses) {
  Targets csv("csv", TargetKind::labels);
  const auto dataset =
      csv.read("text,labels,label\na,\"y, x\",1\nb,,2\nc,\"[\"\"x, y\"\", \"\"z\"\"]\",3\n");
  EXPECT_EQ(names_of(*dataset), (std::vector<std::string>{"x", "x, y", "y", "z"}));
  EXPECT_EQ(dataset->targets(Split::train), 12);
  EXPECT_EQ(sample_of(*dataset, {.sample = 0}).image, (std::vector<float>{1, 0, 1, 0}));
  EXPECT_EQ(sample_of(*dataset, {.sample = 1}).image, std::vector<float>(4, 0));
  EXPECT_EQ(sample_of(*dataset, {.sample = 2}).image, (std::vector<float>{0, 1, 0, 1}));
  Targets json("jsonl", TargetKind::labels);
  EXPECT_EQ(names_of(*json.read("{\"text\": \"a\", \"labels\": [2, 0]}\n"
                                "{\"text\": \"b\", \"labels\": [1]}\n")),
            (std::vector<std::string>{"0", "1", "2"}));
}

TEST(LabelSets, ThatAreWrongAreRefused) {
  Targets json("jsonl", TargetKind::labels);
  json.refuses("{\"text\": \"a\", \"labels\": [0, 1]}\n{\"text\": \"b\", \"labels\": [0, 1, 0]}\n",
               "the label '0' is there twice", 2);
  json.refuses("{\"text\": \"a\", \"labels\": [0]}\n{\"text\": \"b\", \"labels\": [2]}\n",
               "label 2 is out of range", 2);
  json.refuses("{\"text\": \"a\", \"labels\": [\"a\"]}\n{\"text\": \"b\", \"labels\": [1]}\n",
               "those before it are names", 2);
  json.refuses("{\"text\": \"a\", \"labels\": null}\n", "the label is missing", 1);
  json.options.validation_files = {json("v.jsonl", "{\"text\": \"c\", \"labels\": [\"b\"]}\n")};
  EXPECT_ERROR(json.read("{\"text\": \"a\", \"labels\": [\"a\"]}\n"),
               "the label 'b' is that of no row of data.files");
}

/// A model that was trained on them has numbered its classes already.
TEST(ClassNames, MayHaveAnOrderOfTheirOwn) {
  const std::vector<std::string> order{"O", "B-PER", "I-PER"};
  Targets conll("conll", TargetKind::tags), json("jsonl", TargetKind::tags);
  conll.options.class_names = json.options.class_names = order;
  for (const auto& dataset : {conll.read("a O\nb B-PER\n"),
                              json.read("{\"tokens\": [\"a\", \"b\"], \"ner_tags\": [0, 1]}\n")}) {
    EXPECT_EQ(names_of(*dataset), order);
    const ReadSample sample = sample_of(*dataset, {.sample = 0});
    EXPECT_EQ(sample.of.at("tags")[1], 0);
    EXPECT_EQ(sample.of.at("tags")[3], 1);
  }
  conll.refuses("a O\nb B-LOC\n", "the label 'B-LOC' is none of the classes", 1);
  json.refuses("{\"tokens\": [\"a\"], \"ner_tags\": [3]}\n", "the label '3' is none of", 1);
  Targets tsv("tsv", TargetKind::label), sets("jsonl", TargetKind::labels);
  tsv.options.class_names = sets.options.class_names = {"z", "a"};
  EXPECT_EQ(sample_of(*tsv.read("text\tlabel\nx\ta\ny\tz\n"), {.sample = 0}).of.at("label")[0], 1);
  EXPECT_EQ(sample_of(*sets.read("{\"text\": \"x\", \"labels\": [\"z\"]}\n"), {.sample = 0}).image,
            (std::vector<float>{1, 0}));
}

TEST(TaggedWords, StandAtTheFirstTokenOfEachWord) {
  Targets conll("conll", TargetKind::tags);
  const auto dataset = conll.read(
      "-DOCSTART- -X- O O\n\nJoe NNP I-NP B-PER\nate V I-VP O\r\n"
      " \nin P I-PP O\n\n\n");
  EXPECT_EQ(names_of(*dataset), (std::vector<std::string>{"B-PER", "O"}));
  ASSERT_EQ(dataset->samples(Split::train), 2U);
  EXPECT_EQ(dataset->targets(Split::train), 3);
  const SentenceEncoder marks(nullptr);
  const std::int32_t cls = marks.classify(), sep = marks.separator(), pad = marks.padding();
  const ReadSample joe = sample_of(*dataset, {.sample = 0});
  EXPECT_EQ(joe.of.at("tokens"), (std::vector<std::int32_t>{cls, ' ', 'J', 'o', 'e', ' ', 'a', 't',
                                                            'e', sep, pad, pad}));
  EXPECT_EQ(joe.of.at("tags"),
            (std::vector<std::int32_t>{-1, 0, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(joe.of.at("lengths")[0], 10);
  const ReadSample first = sample_of(*dataset, {.sample = 0, .most = 1});
  EXPECT_EQ(first.of.at("tags")[1], 0);
  EXPECT_EQ(first.of.at("tags")[5], kIgnored);
}

TEST(TaggedWords, AreCutWithTheirSentence) {
  Targets json("jsonl", TargetKind::tags);
  json.options.tokens_per_sample = 7;
  const auto dataset =
      json.read("{\"tokens\": [\"abc\", \"de\", \"f\"], \"ner_tags\": [1, 0, 1]}\n");
  EXPECT_EQ(dataset->targets(Split::train), 2);
  const ReadSample cut = sample_of(*dataset, {.sample = 0});
  EXPECT_EQ(cut.of.at("lengths")[0], 7);
  EXPECT_EQ(cut.of.at("tags"), (std::vector<std::int32_t>{-1, 1, -1, -1, -1, 0, -1}));
}

TEST(TaggedWords, HaveASpaceBeforeThemWhereItIsTheirOwn) {
  Targets json("jsonl", TargetKind::tags);
  json.options.tokenizer =
      make_tokenizer(CONCERTINA_SOURCE "/tests/golden/tokenizers/gpt2.json", "");
  const auto dataset = json.read("{\"words\": [\"the\", \"day\"], \"tags\": [\"a\", \"b\"]}\n");
  std::vector<std::int32_t> words;
  json.options.tokenizer->encode(" the day", words);
  const ReadSample sample = sample_of(*dataset, {.sample = 0});
  EXPECT_TRUE(std::equal(words.begin(), words.end(), sample.of.at("tokens").begin() + 1));
}

TEST(TaggedWords, ThatAreBrokenAreRefused) {
  Targets conll("conll", TargetKind::tags);
  conll.refuses("a\n", "a word without a class", 1);
  conll.refuses("a N O\nb O\n", "2 columns, where the first line has 3", 2);
  conll.refuses("a 0\n\nb 2\n", "label 2 is out of range", 3);
  Targets json("jsonl", TargetKind::tags);
  json.refuses("{\"tokens\": [\"a\"], \"tags\": []}\n", "0 classes for 1 words", 1);
  json.refuses("{\"tokens\": [\"a\"], \"tags\": \"O\"}\n", "'tags' is no list", 1);
  json.refuses("{\"tokens\": [], \"tags\": []}\n", "no word of the sentence has a token", 1);
  json.refuses("{\"text\": [], \"tags\": []}\n", "no column is called 'tokens'", 1);
  EXPECT_ERROR(Targets("csv", TargetKind::tags).read("text,label\na,b\n"),
               "a row of csv has one label, and this task wants one for each word");
}

/// A held-out part counts by targets: a sample of several may be cut in the middle.
TEST(TaggedWords, AreCountedInBatches) {
  Targets conll("conll", TargetKind::tags);
  std::shared_ptr<const Dataset> dataset = conll.read("a x\nb y\n\nc x\n\nd x\ne y\nf x\n");
  ValidationSource source(dataset, 2, 4, Split::train);
  EXPECT_EQ(source.targets(), 4);
  EXPECT_EQ(source.batches(), 2);
  EXPECT_EQ(source.valid_targets(0, 2), 3);
  EXPECT_EQ(source.valid_targets(1, 2), 1);
}

}  // namespace
}  // namespace concertina
