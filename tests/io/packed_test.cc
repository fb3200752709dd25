// Short documents packed into samples.
#include "io/datasets/packed.h"

#include <gtest/gtest.h>

#include <map>

#include "core/model/batch.h"
#include "tests/io/reader_files.h"
#include "tests/io/token_files.h"

namespace concertina {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Returns the documents of a sample, each with its tokens and the last target.
std::vector<Tokens> documents_of(const Dataset& dataset, const SampleAt& at) {
  const ReadSample sample = sample_of(dataset, at);
  const Tokens &tokens = sample.of.at("tokens"), &targets = sample.of.at("targets"),
               &starts = sample.of.at("starts");
  std::vector<Tokens> documents;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto start = static_cast<std::size_t>(starts[i]);
    EXPECT_EQ(static_cast<std::size_t>(starts[start]), start);
    if (targets[i] == kIgnored) {
      EXPECT_EQ(tokens[i], 0);
      continue;
    }
    if (start == i) documents.push_back({tokens[i]});
    EXPECT_EQ(documents.back().back(), tokens[i]);
    documents.back().push_back(targets[i]);
  }
  return documents;
}

TEST(Packed, EachGoesIntoTheFirstSampleWithRoom) {
  // Documents of 4, 3, 2, 11, 0, 1 and 6 targets: an end token takes no extra place.
  const PackedPieces packed =
      pack_documents(std::vector<std::uint64_t>{0, 5, 9, 12, 24, 25, 27, 34}, 6);
  const std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> expected{
      {{0, 4}, {9, 2}}, {{5, 3}, {25, 1}}, {{12, 6}}, {{18, 5}}, {{27, 6}}};
  ASSERT_EQ(packed.samples(), expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s) {
    ASSERT_EQ(packed.first[s + 1] - packed.first[s], expected[s].size()) << s;
    for (std::size_t p = 0; p < expected[s].size(); ++p) {
      EXPECT_EQ(packed.pieces[packed.first[s] + p].begin, expected[s][p].first);
      EXPECT_EQ(packed.pieces[packed.first[s] + p].length, expected[s][p].second);
    }
  }
  EXPECT_EQ(packed.targets, (std::vector<std::uint64_t>{0, 6, 10, 16, 21, 27}));
}

TEST(Packed, EachTokenIsATargetOnceAndManyFitWell) {
  std::vector<std::uint64_t> bounds{0};
  for (std::uint64_t d = 0; d < 5000; ++d) bounds.push_back(bounds.back() + 2 + d * d * 7 % 61);
  const PackedPieces packed = pack_documents(bounds, 64);
  std::vector<int> seen(bounds.back());
  for (std::size_t s = 0; s < packed.samples(); ++s) {
    std::uint64_t used = 0;
    for (std::uint64_t p = packed.first[s]; p < packed.first[s + 1]; ++p) {
      const PackedPiece& piece = packed.pieces[p];
      used += piece.length;
      for (std::uint32_t i = 1; i <= piece.length; ++i) ++seen[piece.begin + i];
    }
    EXPECT_LE(used, 64U);
    EXPECT_EQ(used, packed.targets[s + 1] - packed.targets[s]);
  }
  for (const std::uint64_t start : std::span(bounds).first(bounds.size() - 1)) ++seen[start];
  for (const int count : seen) EXPECT_EQ(count, 1);
  EXPECT_LT(
      1 - static_cast<double>(packed.targets.back()) / 64 / static_cast<double>(packed.samples()),
      0.03);
}

TEST(Packed, RowsOfATableShareSamplesAndSeeNoOther) {
  const Folder folder;
  DataOptions options{.format = "jsonl", .validation = 0.2};
  std::string rows;
  for (int i = 0; i < 60; ++i)
    rows +=
        fmt::format("{{\"text\": \"{}\"}}\n",
                    std::string(1 + i % 9, static_cast<char>('a' + i % 26)) + std::to_string(i));
  options.files = {folder("t.jsonl", rows)};
  options.tokens_per_sample = 24;
  options.labelled = false;
  options.documents = "packed";
  const auto dataset = open_dataset(options);
  EXPECT_TRUE(dataset->repeats());
  std::map<std::string, int> seen;
  std::uint64_t shared = 0;
  for (const Split split : {Split::train, Split::validation}) {
    std::int64_t targets = 0;
    for (std::uint64_t s = 0; s < dataset->samples(split); ++s) {
      const std::vector<Tokens> documents = documents_of(*dataset, {.split = split, .sample = s});
      shared += documents.size() > 1 ? 1 : 0;
      for (const Tokens& document : documents) {
        ++seen[std::string(document.begin(), document.end())];
        targets += std::ssize(document) - 1;
      }
      EXPECT_EQ(dataset->targets_before(split, s + 1), targets);
    }
  }
  EXPECT_GT(shared, 5U);
  EXPECT_EQ(seen.size(), 60U);
  for (const auto& [document, count] : seen) EXPECT_TRUE(count == 1 && document.ends_with('\n'));
  ASSERT_EQ(dataset->notes(0).size(), 1U);
  expect_has(dataset->notes(0)[0], "training: 48 pieces of documents packed into ");
  // A held-out split with only the first targets counted.
  const Tokens cut = sample_of(*dataset, {.split = Split::validation, .most = 3}).of.at("targets");
  EXPECT_EQ(std::ranges::count_if(cut, [](int target) { return target != kIgnored; }), 3);
}

}  // namespace
}  // namespace concertina
