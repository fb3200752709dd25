// The held-out part of a labelled set has a fair share of each class, and no part of it is trained
// on.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "io/datasets/content_hash.h"
#include "io/datasets/split_files.h"
#include "io/labelled/questions.h"
#include "tests/io/reader_cases.h"

namespace concertina {
namespace {

using Counts = std::map<std::pair<std::int32_t, Split>, std::size_t>;

Counts counts_of(const std::vector<ItemKey>& items, const std::vector<Split>& split) {
  Counts counts;
  for (std::size_t i = 0; i < items.size(); ++i) ++counts[{items[i].label, split[i]}];
  return counts;
}

/// Returns items of groups and classes with many sizes; `groups` contents to choose from.
std::vector<ItemKey> random_items(Random& random) {
  const std::int64_t classes = draw(random, 1, 6), groups = draw(random, 1, 60);
  std::vector<ItemKey> items(static_cast<std::size_t>(draw(random, 1, 200)));
  for (ItemKey& item : items) {
    const std::int64_t group = draw(random, 0, groups);
    item = {content_hash(std::to_string(group)), static_cast<std::int32_t>(group % classes)};
    if (draw(random, 0, 20) == 0) item.label = static_cast<std::int32_t>(draw(random, 0, 5));
  }
  return items;
}

std::vector<ItemKey> distinct_items(const std::vector<std::size_t>& sizes) {
  std::vector<ItemKey> items;
  for (std::size_t c = 0; c < sizes.size(); ++c)
    for (std::size_t i = 0; i < sizes[c]; ++i)
      items.push_back({content_hash(std::to_string(items.size())), static_cast<std::int32_t>(c)});
  return items;
}

TEST(DrawnSplit, EachClassHasItsShare) {
  const std::vector<ItemKey> items = distinct_items({850, 850, 100, 7});
  const std::vector<Split> split = draw_split(items, {0.15, 0.15}, 0);
  Counts counts = counts_of(items, split);
  for (const Split held : {Split::validation, Split::test}) {
    EXPECT_NEAR(static_cast<double>(counts.at({0, held})), 127.5, 1);
    EXPECT_NEAR(static_cast<double>(counts.at({1, held})), 127.5, 1);
    EXPECT_EQ(counts.at({2, held}), 15U);
    EXPECT_EQ(counts.at({3, held}), 1U);
    EXPECT_EQ(std::ranges::count(split, held), std::int64_t{271});  // 1807 * 0.15, rounded down
  }
}

TEST(DrawnSplit, SmallClassesKeepOneItemToTrainOn) {
  const std::vector<ItemKey> items = distinct_items({1, 2, 3, 300});
  const Counts counts = counts_of(items, draw_split(items, {0.1, 0.1}, 0));
  EXPECT_EQ(counts.at({0, Split::train}), 1U);
  EXPECT_EQ(counts.at({1, Split::train}), 1U);
  EXPECT_EQ(counts.at({1, Split::validation}), 1U);
  for (const Split part : {Split::train, Split::validation, Split::test})
    EXPECT_EQ(counts.at({2, part}), 1U);
}

TEST(DrawnSplit, TheOrderOfTheItemsDoesNotMatter) {
  for (std::uint64_t turn = 0; turn < 200; ++turn) {
    Random random(turn);
    const std::vector<ItemKey> items = random_items(random);
    std::vector<std::size_t> places(items.size());
    std::iota(places.begin(), places.end(), 0);
    std::ranges::shuffle(places, random);
    std::vector<ItemKey> shuffled;
    for (const std::size_t place : places) shuffled.push_back(items[place]);
    const std::vector<Split> a = draw_split(items, {0.2, 0.1}, turn);
    const std::vector<Split> b = draw_split(shuffled, {0.2, 0.1}, turn);
    for (std::size_t i = 0; i < places.size(); ++i) ASSERT_EQ(b[i], a[places[i]]) << turn;
  }
}

TEST(DrawnSplit, EqualItemsAreOnOneSideAndEachClassCanBeTrainedOn) {
  for (std::uint64_t turn = 0; turn < 500; ++turn) {
    Random random(turn);
    const std::vector<ItemKey> items = random_items(random);
    const double validation = static_cast<double>(draw(random, 0, 60)) / 100;
    const double test = static_cast<double>(draw(random, 0, 30)) / 100;
    const std::vector<Split> split = draw_split(items, {validation, test}, turn);
    std::map<std::uint64_t, Split> sides;
    std::map<std::uint64_t, std::int32_t> lowest;
    for (std::size_t i = 0; i < items.size(); ++i) {
      ASSERT_EQ(sides.emplace(items[i].content, split[i]).first->second, split[i]) << turn;
      std::int32_t& label = lowest.emplace(items[i].content, items[i].label).first->second;
      label = std::min(label, items[i].label);
    }
    std::map<std::int32_t, std::map<Split, int>> groups;
    for (const auto& [content, label] : lowest) ++groups[label][sides.at(content)];
    for (auto& [label, of] : groups) {
      const int all = of[Split::train] + of[Split::validation] + of[Split::test];
      EXPECT_GE(of[Split::train], 1) << turn;
      const int validated = validation > 0 && all >= 2 ? 1 : 0;
      const int tested = test > 0 && all >= (validation > 0 ? 3 : 2) ? 1 : 0;
      EXPECT_GE(of[Split::validation], validated) << turn;
      EXPECT_GE(of[Split::test], tested) << turn;
      EXPECT_TRUE(validation > 0 || of[Split::validation] == 0) << turn;
    }
  }
}

TEST(DrawnSplit, AnItemThatIsThereOftenIsTrainedOn) {
  std::vector<ItemKey> items = distinct_items({100, 100});
  items.insert(items.end(), 900, ItemKey{content_hash("good"), 1});
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Split> split = draw_split(items, {0.1, 0}, seed);
    EXPECT_EQ(split.back(), Split::train);
    EXPECT_EQ(std::ranges::count(split, Split::validation), 110);
  }
}

/// If this changed, a run could hold out rows that a run of another version trained on.
TEST(DrawnSplit, IsWhatItAlwaysWas) {
  const std::vector<ItemKey> items = distinct_items({10, 10});
  const auto held = [&](std::uint64_t seed) {
    const std::vector<Split> split = draw_split(items, {0.2, 0}, seed);
    std::set<std::size_t> numbers;
    for (std::size_t i = 0; i < split.size(); ++i)
      if (split[i] == Split::validation) numbers.insert(i);
    return numbers;
  };
  EXPECT_EQ(held(0), (std::set<std::size_t>{4, 9, 16, 18}));
  EXPECT_EQ(held(1), (std::set<std::size_t>{3, 4, 13, 17}));
}

TEST(FoldedText, CaseAndSpaceDoNotCount) {
  const auto folded = [](std::string_view text) {
    std::string out;
    append_folded(text, out);
    return out;
  };
  EXPECT_EQ(folded("  A\tgood \r\n FILM "), "a good film");
  EXPECT_EQ(folded("\xc3\x84\xc2\xa0\xe3\x80\x80 B"),
            "\xc3\xa4 b");  // no-break, ideographic
  EXPECT_EQ(folded("\xff"
                   "A\xc3"),
            "\xff"
            "a\xc3");
  EXPECT_EQ(folded(" \t"), "");
  EXPECT_NE(folded("a b"), folded("ab"));
}

/// 50 rows of each class, sorted by class; 0.1 of them are for the test.
struct SortedTable : Tsv {
  SortedTable() {
    std::string text = "sentence\tlabel\n";
    for (int i = 0; i < 100; ++i) text += fmt::format("sentence {}\t{}\n", i, i / 50);
    (*this)("a.tsv", text);
    options.validation = 0.2;
    options.test = 0.1;
  }
};

TEST(Split, AFileThatIsSortedByLabelIsSplitFairly) {
  SortedTable folder;
  const auto dataset = open_dataset(folder.options);
  const Splits& splits = *dataset->splits();
  EXPECT_EQ(splits.of_class[0], (std::vector<std::uint64_t>{35, 35}));
  EXPECT_EQ(splits.of_class[1], (std::vector<std::uint64_t>{10, 10}));
  EXPECT_EQ(splits.of_class[2], (std::vector<std::uint64_t>{5, 5}));
  EXPECT_EQ(dataset->samples(Split::test), 10U);
  std::set<std::uint64_t> items;
  for (const Split split : {Split::train, Split::validation, Split::test})
    for (std::uint64_t i = 0, last = 0; i < splits.size(split); ++i) {
      const std::uint64_t item = splits.item(split, i);
      EXPECT_TRUE(i == 0 || item > last) << "samples keep the order of the files";
      last = item;
      items.insert(item);
    }
  EXPECT_EQ(items.size(), 100U);
  expect_has(dataset->summary(), "validation  20 sentences of 2 classes (0: 10, 1: 10)");
}

TEST(Split, TheEndIsHeldOutWhereItIsAskedFor) {
  SortedTable folder;
  folder.options.options["split"] = "end";
  EXPECT_ERROR(open_dataset(folder.options), "none of the 20 rows in validation has the class '0'");
  EXPECT_ERROR(open_dataset(folder.options), "data.missing_classes = true");
  folder.options.options["missing_classes"] = true;
  const Splits splits = *open_dataset(folder.options)->splits();
  EXPECT_EQ(splits.item(Split::train, 69), 69U);
  EXPECT_EQ(splits.item(Split::validation, 0), 70U);
  EXPECT_EQ(splits.item(Split::test, 0), 90U);
  folder.options.options["split"] = "stratified";
  folder.options.test_files = folder.options.files;
  EXPECT_ERROR(open_dataset(folder.options), "are mutually exclusive");
}

TEST(Split, ATestShareIsDrawnBesideFilesToValidateOn) {
  SortedTable folder;
  folder.options.validation = 0;
  folder.options.validation_files = {
      folder("b.tsv", "sentence\tlabel\nother\t0\nSentence  7\t0\nmore\t1\n")};
  EXPECT_ERROR(open_dataset(folder.options),
               "1 of 3 rows in validation (33.3%) are also in the training data");
  EXPECT_ERROR(open_dataset(folder.options), "data.most_overlap = 0.34");
  folder.options.most_overlap = 0.34;
  const auto dataset = open_dataset(folder.options);
  EXPECT_EQ(dataset->samples(Split::train), 90U);
  EXPECT_EQ(dataset->samples(Split::validation), 3U);
  EXPECT_EQ(dataset->samples(Split::test), 10U);
  EXPECT_EQ(dataset->splits()->item(Split::validation, 0), 100U);
  EXPECT_LT(dataset->splits()->item(Split::test, 9), 100U);
  EXPECT_EQ(dataset->splits()->trained, (std::array<std::uint64_t, 3>{0, 1, 0}));
  const std::vector<std::string> lines = split_lines(*dataset->splits(), dataset->classes());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "training: 90 rows (0: 45, 1: 45)");
  EXPECT_EQ(lines[1],
            "validation: 3 rows (0: 2, 1: 1); 1 of them (33.3%) are also in the training data");
  EXPECT_EQ(split_lines(*dataset->splits(), {})[0], "training: 90 rows") << "as for masked-lm";
  EXPECT_EQ(lines[2], "test: 10 rows (0: 5, 1: 5); none are also in the training data");
}

TEST(Split, QuestionsOnOneTextAreOnOneSide) {
  Squad folder;
  std::string paragraphs;
  for (int p = 0; p < 20; ++p) {
    std::string asked;
    for (int q = 0; q < 5; ++q)
      asked += fmt::format(R"({}{{"question": "q{}?", "answers": [{{"text": "end {}", )"
                           R"("answer_start": 5}}]}})",
                           q > 0 ? "," : "", q, p);
    paragraphs +=
        fmt::format(R"({}{{"context": "text end {}", "qas": [{}]}})", p > 0 ? "," : "", p, asked);
  }
  folder("s.json", fmt::format(R"({{"data": [{{"paragraphs": [{}]}}]}})", paragraphs));
  folder.options.validation = 0.25;
  const auto dataset = open_dataset(folder.options);
  const Splits& splits = *dataset->splits();
  EXPECT_EQ(splits.size(Split::validation), 25U);
  std::set<std::uint64_t> texts;
  for (std::uint64_t i = 0; i < 25; ++i) texts.insert(splits.item(Split::validation, i) / 5);
  EXPECT_EQ(texts.size(), 5U);
  for (std::uint64_t i = 0; i < 75; ++i)
    EXPECT_FALSE(texts.contains(splits.item(Split::train, i) / 5));
  const QuestionAnswers* const asked = dataset->questions();
  EXPECT_EQ(asked->questions(Split::validation), 25U);
  for (std::uint64_t i = 0; i < 25; ++i) {
    EXPECT_EQ(asked->question(Split::validation, i), i);
    EXPECT_EQ(asked->answers(Split::validation, i)[0],
              fmt::format("end {}", splits.item(Split::validation, i) / 5));
  }
}

}  // namespace
}  // namespace concertina
