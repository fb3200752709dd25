// What is wrong with rows, and which texts are nearly the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "io/quality/near_duplicates.h"
#include "io/quality/row_faults.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

using Runs = std::vector<std::string_view>;

/// The runs of 5 bytes, each once.
Runs runs_of(std::string_view text) {
  std::set<std::string_view> all{text.substr(0, 5)};
  for (std::size_t i = 0; i + 5 <= text.size(); ++i) all.insert(text.substr(i, 5));
  return {all.begin(), all.end()};
}

/// Jaccard's index.
double similarity_of(const Runs& a, const Runs& b) {
  Runs both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return static_cast<double>(both.size()) / static_cast<double>(a.size() + b.size() - both.size());
}

/// Texts of words, of which some are others with a few letters changed.
std::vector<std::string> some_texts(Random& random) {
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) {
    if (!texts.empty() && draw(random, 0, 2) == 0) {
      std::string text = texts[static_cast<std::size_t>(draw(random, 0, std::ssize(texts) - 1))];
      for (std::int64_t change = draw(random, 1, 4); change > 0; --change)
        text[static_cast<std::size_t>(draw(random, 0, std::ssize(text) - 1))] = 'z';
      texts.push_back(text);
      continue;
    }
    std::string text;
    for (std::int64_t letters = draw(random, 1, 120); letters > 0; --letters)
      text += draw(random, 0, 5) == 0 ? ' ' : static_cast<char>('a' + draw(random, 0, 20));
    texts.push_back(text);
  }
  return texts;
}

TEST(NearDuplicates, AreThoseThatAComparisonOfAllPairsFinds) {
  std::size_t near = 0, missed = 0;
  for (std::uint64_t turn = 0; turn < 60; ++turn) {
    Random random(turn);
    const std::vector<std::string> texts = some_texts(random);
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    std::vector<Runs> runs;
    for (const std::string& text : texts) runs.push_back(runs_of(text));
    std::map<std::size_t, NearDuplicate> found;
    for (const NearDuplicate& one : near_duplicates(views, 0.8)) found[one.item] = one;
    for (const auto& [item, one] : found) {
      EXPECT_GE(one.similarity, 0.8);
      EXPECT_LT(one.of, item);
      EXPECT_FALSE(found.contains(one.of)) << "it stands for others and is near itself";
      EXPECT_DOUBLE_EQ(one.similarity, similarity_of(runs[item], runs[one.of]));
    }
    for (std::size_t item = 0; item < texts.size(); ++item) {
      const bool has_near = [&] {
        for (std::size_t other = 0; other < item; ++other)
          if (!found.contains(other) && similarity_of(runs[item], runs[other]) >= 0.8) return true;
        return false;
      }();
      near += has_near ? 1 : 0;
      missed += has_near && !found.contains(item) ? 1 : 0;
    }
  }
  EXPECT_GT(near, 500U);
  EXPECT_LE(missed, near / 500);
}

TEST(NearDuplicates, OfManyThatAreAlikeEachIsFoundOnce) {
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i)
    texts.push_back("a long sentence that all of these rows have, with the number " +
                    std::to_string(i));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const std::vector<NearDuplicate> found = near_duplicates(views, 0.8);
  EXPECT_GT(found.size(), 2990U);
  EXPECT_TRUE(std::ranges::is_sorted(found, {}, &NearDuplicate::item));
  EXPECT_TRUE(near_duplicates({}, 0.8).empty());
  EXPECT_TRUE(near_duplicates(std::vector<std::string_view>{"", "a"}, 0.8).empty());
}

using Fault = std::tuple<std::size_t, RowFault, std::size_t>;

std::vector<Fault> faults_of(const std::vector<CheckedRow>& rows, const FaultLimits& limits = {}) {
  std::vector<Fault> faults;
  for (const RowFinding& one : find_faults(rows, limits))
    faults.emplace_back(one.row, one.fault, one.other);
  return faults;
}

TEST(RowFaults, EachIsSaidOfTheRowThatWouldGo) {
  constexpr std::size_t kNone = RowFinding::kNone;
  const std::vector<CheckedRow> rows{
      {.text = {"A good film"}, .label = "1"},
      {.text = {" a GOOD  film "}, .label = "1"},
      {.text = {"so so"}, .label = "0"},
      {.text = {"so so"}, .label = "1"},
      {.text = {" \t"}, .label = "1"},
      {.text = {"caf\xe9"}, .label = "1"},
      {.label = "1", .broken = "1 columns"},
      {.text = {"held out"}, .label = "1"},
      {.text = {"much too long"}, .label = "1", .tokens = 9},
      {.text = {"Held out"}, .label = "1", .split = Split::validation},
      {.text = {"held out"}, .label = "1", .split = Split::validation},
      {.text = {"fine"}, .label = "1", .split = Split::test},
  };
  EXPECT_EQ(faults_of(rows, {.tokens = 8}), (std::vector<Fault>{{1, RowFault::duplicate, 0},
                                                                {2, RowFault::conflict, 3},
                                                                {3, RowFault::conflict, 2},
                                                                {3, RowFault::duplicate, 2},
                                                                {4, RowFault::empty, kNone},
                                                                {5, RowFault::undecodable, kNone},
                                                                {6, RowFault::broken, kNone},
                                                                {7, RowFault::overlap, 9},
                                                                {8, RowFault::cut, kNone},
                                                                {10, RowFault::duplicate, 9}}));
  EXPECT_EQ(faults_of(rows).size(), 9U) << "without a limit no row is too long";
}

TEST(RowFaults, ARowToTrainOnIsNearOneThatIsHeldOut) {
  const std::vector<CheckedRow> rows{
      {.text = {"the quick brown fox jumps over the lazy dog"}},
      {.text = {"the quick brown fox jumps over the lazy dogs"}, .split = Split::test}};
  EXPECT_EQ(faults_of(rows), (std::vector<Fault>{{0, RowFault::near, 1}}));
  EXPECT_TRUE(faults_of(rows, {.near = 2}).empty());
}

TEST(RowFaults, PairsAreTheSameWhereBothTextsAre) {
  const std::vector<CheckedRow> rows{
      {.text = {"a", "b c"}}, {.text = {"a b", "c"}}, {.text = {"A", "b  C"}}, {.text = {"a", ""}}};
  EXPECT_EQ(faults_of(rows), (std::vector<Fault>{{2, RowFault::duplicate, 0},
                                                 {3, RowFault::empty, RowFinding::kNone}}));
}

}  // namespace
}  // namespace concertina
