// Tables of several formats, as others write them: tests/golden/make_tables.py made the files.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <utility>

#include "core/model/batch.h"
#include "io/datasets/sentences.h"
#include "io/datasets/source.h"
#include "io/datasets/split_files.h"
#include "io/labelled/labelled_rows.h"
#include "io/tables/table.h"
#include "tests/io/reader_files.h"

namespace concertina {
namespace {

nlohmann::json golden() {
  return nlohmann::json::parse(slurp(CONCERTINA_SOURCE "/tests/golden/tables.json"));
}

using Rows = std::vector<std::vector<std::string>>;

/// The cells of all rows; those that are nested or missing with a word before them.
Rows rows_of(TableReader& table) {
  Rows rows;
  for (RowCells row; table.next(row);) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (const CellText& cell : row.cells)
      cells.push_back((cell.kind == CellText::Kind::nested    ? "nested "
                       : cell.kind == CellText::Kind::missing ? "missing"
                                                              : "") +
                      std::string(cell.text));
  }
  return rows;
}

struct Table : Folder {
  Rows operator()(const std::string& format, const std::string& text,
                  const TableFileOptions& options = {}) const {
    const auto table = open_table(format, Folder::operator()("t", text), options);
    return rows_of(*table);
  }
};

std::string format_of(const std::string& name) {
  return name.substr(name.find('.') + 1);
}

TEST(Table, FilesOfPandasAreReadAsPandasReadsThem) {
  const nlohmann::json files = golden()["pandas"];
  EXPECT_EQ(files.size(), 8U);
  for (const auto& [name, expected] : files.items()) {
    LabelledRows read({.format = format_of(name)});
    read.read(CONCERTINA_SOURCE "/tests/golden/tables/" + name);
    ASSERT_EQ(read.rows().size(), expected.size()) << name;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(read.rows()[i].text[0], expected[i][0].get<std::string>()) << name << " " << i;
      EXPECT_EQ(read.rows()[i].label.text, expected[i][1].get<std::string>()) << name << " " << i;
    }
    EXPECT_TRUE(contains(read.summary(), "columns     text and the label label; not ")) << name;
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

// What a competition's test file has.
TEST(Table, RowsToBeEvaluatedMayHaveNoLabels) {
  const Folder folder;
  const std::string labelled = folder("a", "text\tlabel\none\t0\ntwo\t1\n");
  const std::string bare = folder("b", "index\ttext\n0\tthree\n1\tfour\n2\tone\n");
  const auto open = [&](const std::string& train, const std::string& test, TargetKind kind) {
    DataOptions options{.format = "tsv", .files = {train}, .test_files = {test}, .validation = 0};
    options.tokens_per_sample = 16;
    options.most_overlap = 1;
    options.options["missing_classes"] = true;
    options.targets = kind;
    return open_dataset(options);
  };
  for (const std::string& train : {labelled, bare})
    for (const TargetKind kind : {TargetKind::label, TargetKind::scores}) {
      const auto data = open(train, bare, kind);
      EXPECT_EQ(data->samples(Split::test), 3U);
      EXPECT_EQ(data->targets(Split::test), 0);
      std::int32_t label = 0;
      float score = 0;
      std::vector<View> views(data->fields().size());
      views[3] =
          kind == TargetKind::label ? View{&label, 1, DType::i32} : View{&score, 1, DType::f32};
      data->write({.split = Split::test, .sample = 1}, views);
      EXPECT_EQ(label, kind == TargetKind::label ? kIgnored : 0);
      EXPECT_EQ(score, kind == TargetKind::label ? 0 : kNoScore);
      ValidationSource source(data, 2, 0, Split::test);
      EXPECT_EQ(source.batches(), 2);
      EXPECT_EQ(source.targets(), 0);
    }
  EXPECT_EQ(open(labelled, labelled, TargetKind::label)->targets(Split::test), 2);
  EXPECT_THROW(open(bare, labelled, TargetKind::label), Error);
}

TEST(Table, QuotesOfATsvAreTextUnlessTheyMustEncloseCells) {
  const Table table;
  const std::string spoken = "sentence\tlabel\n\"Well, well\"\t1\nhe said \"no\", twice\t0\n";
  EXPECT_EQ(table("tsv", spoken)[0][0], "\"Well, well\"");
  EXPECT_EQ(table("tsv", spoken, {.quotes = "enclose"})[0][0], "Well, well");
  const std::string excel =
      "sentence\tlabel\n\"Well, well\"\t1\nno\t0\n";  // commas alone are quoted
  EXPECT_EQ(table("tsv", excel)[0][0], "Well, well");
  EXPECT_EQ(table("tsv", excel, {.quotes = "text"})[0][0], "\"Well, well\"");
  EXPECT_EQ(table("tsv", "sentence\tlabel\n\"a\tb\"\t1\n")[0][0], "a\tb");
  EXPECT_EQ(table("tsv", "\"sentence\"\t\"label\"\n\"a\"\t1\n")[0][0], "a");
  EXPECT_EQ(table("tsv", "sentence\tlabel\n\"a \"\"b\"\"\"\t1\n")[0][0], "a \"b\"");
  EXPECT_EQ(table("tsv", "sentence\tlabel\n\"a \"\"b\"\"\"\t1\n\"open\t0\n")[0][0],
            "\"a \"\"b\"\"\"")
      << "another cell is not quoted soundly";
}

TEST(Table, CellsOfCsvHoldWhatTheyLike) {
  const Table table;
  EXPECT_EQ(table("csv", "a,b\r\n\"x,\"\"y\"\"\",\"1\r\n2\"\r\n,\r\n\r\nlast,"),
            (Rows{{"x,\"y\"", "1\r\n2"}, {"", ""}, {"last", ""}}));
  EXPECT_EQ(table("csv",
                  "\xef\xbb\xbf"
                  "a;b\nx,y;2"),
            (Rows{{"x,y", "2"}}));
  EXPECT_EQ(table("csv", "a\nan unquoted \"quote\"\n\"\"\n"),
            (Rows{{"an unquoted \"quote\""}, {""}}));
  EXPECT_EQ(table("csv", "\"say \"\"x\"\"\",1\nb,2", {.header = false}),
            (Rows{{"say \"x\"", "1"}, {"b", "2"}}));
}

TEST(Table, JsonLinesHaveKeysInAnyOrderAndListsAreTold) {
  const Table table;
  EXPECT_EQ(table("jsonl",
                  "{\"a\": \"\\u00fc\\n\", \"b\": 1}\r\n\n{\"b\": 2.5, \"more\": 0, \"a\": true}\n"
                  "{\"a\": null, \"b\": [\"x\", 1]}"),
            (Rows{{"\xc3\xbc\n", "1"}, {"true", "2.5"}, {"missing", "nested [\"x\",1]"}}));
}

TEST(Table, ReadersGoOnAfterARowThatIsBroken) {
  const Folder folder;
  const auto broken = [&](const std::string& format, const std::string& text, const char* what,
                          std::size_t line, std::size_t rows_after) {
    const auto table = open_table(format, folder("t", text));
    RowCells row;
    ASSERT_TRUE(table->next(row));
    const std::string error = error_of([&] { table->next(row); });
    EXPECT_TRUE(contains(error, what)) << error;
    EXPECT_TRUE(contains(error, fmt::format("t:{}", line))) << error;
    EXPECT_EQ(rows_of(*table).size(), rows_after) << text;
  };
  broken("tsv", "a\tb\n1\t2\n3\n4\t5\n", "1 columns where the first line has 2", 3, 1);
  broken("csv", "a,b\n\"1\n1\",2\n3\n4,5\n6,7\n", "1 columns where the first line has 2", 4, 2);
  broken("csv", "a,b\n1,2\n\"3\"x,\n4,5\n", "text follows a closing quote", 3, 1);
  broken("csv", "a,b\n1,2\n\"3,\n4,5\n", "a quote is opened and not closed", 3, 0);
  broken("jsonl", "{\"a\": 1}\n{\"a\": }\n{\"a\": 2}\n", "this is no JSON, from byte 7 on", 2, 1);
  broken("jsonl", "{\"a\": 1}\n[1]\n{\"a\": 2}\n", "this is JSON, but no object", 2, 1);
}

TEST(Table, ColumnsAreThoseThatKeysName) {
  const Folder folder;
  DataOptions options;
  options.format = "csv";
  options.files = {folder("a.csv", "id,review,stars,label\n1,fine,good,0\n2,dull,bad,0\n")};
  options.validation = 0;
  options.tokens_per_sample = 8;
  EXPECT_ERROR(open_dataset(options), "no column is known to be the sentence");
  EXPECT_ERROR(open_dataset(options), "one or two of: id, review, stars, label");
  options.options["text_columns"] = std::vector<std::string>{"review"};
  options.options["label_column"] = "star";
  EXPECT_ERROR(open_dataset(options), "no column is called 'star', which data.label_column names");
  options.options["label_column"] = "stars";
  const auto dataset = open_dataset(options);
  EXPECT_EQ(std::vector(dataset->classes().begin(), dataset->classes().end()),
            (std::vector<std::string>{"bad", "good"}));
  EXPECT_TRUE(
      contains(dataset->summary(), "columns     review and the label stars; not id, label\n"))
      << dataset->summary();
  options.options["header"] = false;
  options.options["text_columns"] = std::vector<std::string>{"2", "1"};
  options.options["label_column"] = "4";
  options.files = {folder("b.csv", "1,fine,good,0\n2,dull,bad,1\n")};
  const auto pairs = open_dataset(options);
  EXPECT_EQ(pairs->samples(Split::train), 2U);
  EXPECT_EQ(sample_of(*pairs, {}).of.at("lengths")[0], 8);  // [CLS] fine [SEP] 1 [SEP]
}

/// The text that all windows of a split hold, in order, with the targets of the last.
std::vector<std::int32_t> text_of(const Dataset& dataset, Split split) {
  std::vector<std::int32_t> text;
  for (std::uint64_t i = 0; i < dataset.samples(split); ++i) {
    const ReadSample sample = sample_of(dataset, {.split = split, .sample = i});
    if (text.empty()) text.push_back(sample.of.at("tokens")[0]);
    for (const std::int32_t target : sample.of.at("targets"))
      if (target != kIgnored) text.push_back(target);
  }
  return text;
}

TEST(Table, RowsAreDocumentsOfOneText) {
  const Folder folder;
  const auto gpt2 = make_tokenizer(CONCERTINA_SOURCE "/tests/golden/tokenizers/gpt2.json", "");
  const std::int32_t end = *gpt2->special(SpecialToken::end);
  const std::vector<std::string> texts{"Hello there", "a, \"b\"\nc", "na\xc3\xafve"};
  const std::map<std::string, std::string> files{
      {"csv",
       "id,text,label,score\n1,Hello there,0,1\n2,\"a, "
       "\"\"b\"\"\nc\",,\n3,,1,1\n4,na\xc3\xafve,2,2\n"},
      {"jsonl",
       "{\"text\": \"Hello there\", \"label\": [1]}\n{\"text\": \"a, \\\"b\\\"\\nc\"}\n\n"
       "{\"text\": \"\"}\n{\"text\": \"na\\u00efve\"}\n"},
      {"tsv", "text\tid\nHello there\t1\n\"a, \"\"b\"\"\nc\"\t2\n\t3\nna\xc3\xafve\t4\n"}};
  for (const auto& [format, content] : files) {
    DataOptions options{
        .format = format, .files = {folder("t." + format, content)}, .validation = 0};
    options.options["windows"] = "fixed";
    options.tokens_per_sample = 1;
    options.documents = "joined";
    options.labelled = false;
    options.tokenizer = gpt2;
    std::vector<std::int32_t> expected;
    for (const std::string& text : texts) {
      gpt2->encode(text, expected);
      expected.push_back(end);
    }
    const auto dataset = open_dataset(options);
    EXPECT_EQ(text_of(*dataset, Split::train), expected) << format;
    EXPECT_EQ(dataset->fields().size(), 2U);
    EXPECT_TRUE(contains(dataset->summary(), "training    4 documents\n")) << dataset->summary();
    EXPECT_TRUE(contains(dataset->summary(), "columns     text; not ")) << dataset->summary();
    options.tokenizer = nullptr;
    expected.clear();
    for (const std::string& text : texts)
      for (const char c : text + "\n") expected.push_back(static_cast<unsigned char>(c));
    EXPECT_EQ(text_of(*open_dataset(options), Split::train), expected) << format;
  }
}

TEST(Table, DocumentsAreHeldOutWhole) {
  const Folder folder;
  DataOptions options{.format = "jsonl", .validation = 0.25, .test = 0.25};
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += fmt::format("{{\"text\": \"{}\"}}\n", i % 20 + 100);
  options.files = {folder("t.jsonl", rows)};
  options.options["windows"] = "fixed";
  options.tokens_per_sample = 1;
  options.documents = "joined";
  options.labelled = false;
  const auto dataset = open_dataset(options);
  std::map<std::string, std::set<Split>> splits;
  std::map<std::string, int> seen;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    std::string word;
    for (const std::int32_t byte : text_of(*dataset, split)) {
      if (byte != '\n') word += static_cast<char>(byte);
      if (byte != '\n') continue;
      splits[word].insert(split);
      ++seen[std::exchange(word, "")];
    }
    EXPECT_EQ(word, "");
  }
  EXPECT_EQ(seen.size(), 20U);
  for (const auto& [word, count] : seen) EXPECT_EQ(count, 2) << word;
  for (const auto& [word, in] : splits)
    EXPECT_EQ(in.size(), 1U) << word;  // duplicates are not parted
  ASSERT_NE(dataset->splits(), nullptr);
  EXPECT_EQ(dataset->splits()->sizes, (std::array<std::uint64_t, 3>{20, 10, 10}));
}

TEST(Table, DocumentsThatCannotBeReadAreRefused) {
  const Folder folder;
  DataOptions options{.format = "csv", .validation = 0};
  options.documents = "joined";
  options.labelled = false;
  options.tokens_per_sample = 1;
  options.files = {folder("a.csv", "text\nfine\n\xff\xfe\n")};
  options.tokenizer = make_tokenizer(CONCERTINA_SOURCE "/tests/golden/tokenizers/gpt2.json", "");
  EXPECT_ERROR(open_dataset(options), "a.csv:3");
  options.files = {folder("a.csv", "sentence1,sentence2\na,b\n")};
  EXPECT_ERROR(open_dataset(options), "at: data.text_columns");
  options.files = {folder("a.csv", "text\n\"\"\n")};
  EXPECT_ERROR(open_dataset(options), "the text is shorter than one sample");
}

TEST(Table, ATaskWithoutLabelsNeedsNone) {
  const Folder folder;
  DataOptions options{
      .format = "csv", .files = {folder("a.csv", "text\nabc\nde\n")}, .validation = 0};
  options.tokens_per_sample = 6;
  EXPECT_ERROR(open_dataset(options), "no column is called 'label'");
  options.labelled = false;
  const auto dataset = open_dataset(options);
  EXPECT_EQ(dataset->fields().size(), 3U);
  EXPECT_EQ(dataset->classes().size(), 0U);
  EXPECT_EQ(sample_of(*dataset, {.sample = 1}).of.at("lengths")[0], 4);
  folder("b.csv", "text,label\nabc,1\n");
  options.files.push_back(folder.path("b.csv"));
  EXPECT_ERROR(open_dataset(options), "some files have labels, others none");
}

TEST(Table, LabelsThatAreNoClassAreRefused) {
  const Folder folder;
  DataOptions options;
  options.format = "jsonl";
  options.validation = 0;
  options.tokens_per_sample = 8;
  const auto refused = [&](const std::string& rows, const char* where, const char* what) {
    options.files = {folder("a.jsonl", rows)};
    EXPECT_ERROR(open_dataset(options), where);
    EXPECT_ERROR(open_dataset(options), what);
  };
  refused("{\"text\": \"a\", \"label\": [0, 1]}", "a.jsonl:1", "the label is a list");
  refused("{\"text\": \"a\", \"label\": 0}\n{\"text\": \"a\"}", "a.jsonl:2", "the label is empty");
  refused("{\"text\": \"a\", \"label\": 2.5}\n", "a.jsonl:1", "the label '2.5' is a score");
  refused("{\"text\": [\"a\"], \"label\": 0}", "a.jsonl:1", "'text' is a list, not a text");
  refused("{\"text\": \"a\", \"label\": 0}\n\n{\"label\": 0}", "a.jsonl:3", "'text' is missing");
  options.files = {
      folder("a.jsonl", "{\"text\": \"a\", \"label\": 1.0}\n{\"text\": \"b\", \"label\": 0}")};
  EXPECT_EQ(open_dataset(options)->classes()[1], "1");
}

}  // namespace
}  // namespace concertina
