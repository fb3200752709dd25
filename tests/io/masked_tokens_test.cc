// Which tokens of which samples are masked, in text and in sentences, and the other fields.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "io/datasets/masked_tokens.h"
#include "io/datasets/sentences.h"
#include "io/datasets/source.h"
#include "tests/io/reader_cases.h"

namespace concertina {
namespace {

TEST(MaskedTokens, ASampleHasItsShareOfTargetsAndTheirTokensAreHidden) {
  Folder folder;
  const auto text = open_dataset({.files = {folder("text", ramp(4001))},
                                  .validation = 0.3,
                                  .tokens_per_sample = 100,
                                  .options = {{"windows", "fixed"}}});
  const auto dataset = masked_tokens(text, nullptr);
  const SentenceEncoder marks(nullptr);
  EXPECT_EQ(masked_count(100), 15);
  EXPECT_EQ(masked_count(1), 1);
  std::array<int, 3> seen{};  // masked, unchanged, another token
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch)
    for (std::uint64_t i = 0; i < text->samples(Split::train); ++i) {
      const SampleAt at{.sample = i, .seed = 2, .epoch = epoch};
      const ReadSample plain = sample_of(*text, at), masked = sample_of(*dataset, at);
      int targets = 0;
      for (std::size_t t = 0; t < 100; ++t) {
        const std::int32_t was = plain.of.at("tokens")[t], is = masked.of.at("tokens")[t];
        if (masked.of.at("targets")[t] == kIgnored) {
          ASSERT_EQ(is, was);
          continue;
        }
        ++targets;
        ASSERT_EQ(masked.of.at("targets")[t], was);
        ++seen[is == marks.mask() ? 0 : is == was ? 1 : 2];
        ASSERT_TRUE(is == marks.mask() || !marks.is_mark(is));
      }
      ASSERT_EQ(targets, 15);
      ASSERT_EQ(masked.of.at("lengths")[0], 100);
      ASSERT_EQ(masked.of.at("types"), std::vector<std::int32_t>(100, 0));
    }
  const double all = seen[0] + seen[1] + seen[2];
  EXPECT_NEAR(seen[0] / all, 0.8, 0.01);
  EXPECT_NEAR(seen[2] / all, 0.1, 0.01);
}

TEST(MaskedTokens, MasksFollowFromSeedEpochAndSampleAlone) {
  Folder folder;
  const auto text = open_dataset(
      {.files = {folder("text", ramp(4001))}, .validation = 0.3, .tokens_per_sample = 100});
  const auto dataset = masked_tokens(text, nullptr);
  EXPECT_FALSE(dataset->repeats());
  const auto targets = [&](std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) {
    return sample_of(*dataset, {.sample = sample, .seed = seed, .epoch = epoch}).of.at("targets");
  };
  EXPECT_EQ(targets(1, 2, 3), targets(1, 2, 3));
  EXPECT_NE(targets(1, 2, 3), targets(1, 3, 3));
  EXPECT_NE(targets(1, 2, 3), targets(2, 2, 3));
  // Only existing targets are counted, whatever the requested number.
  for (const std::int64_t most : {0, 1, 17, 30, 1000}) {
    ValidationSource held(dataset, 4, most);
    std::int64_t count = 0;
    for (std::int64_t step = 0; step < held.batches(); ++step) {
      Buffer out(400, DType::i32);
      held.load(step, 0, 4, std::array{View{}, View{}, View{}, out.view()});
      const auto found = 400 - std::count(out.view().i32(), out.view().i32() + 400, kIgnored);
      EXPECT_EQ(found, held.valid_targets(step, 4));
      count += found;
    }
    EXPECT_EQ(count, held.targets());
    EXPECT_GT(count, 0);
  }
}

TEST(MaskedTokens, SentencesKeepTheirMarks) {
  const Tsv folder;
  const auto dataset = masked_tokens(open_dataset(folder.options), nullptr);
  const std::array counts{1, 1, 1};  // from 4, 4 and 6 tokens
  for (std::uint64_t i = 0; i < 3; ++i)
    for (std::uint64_t epoch = 0; epoch < 100; ++epoch) {
      const ReadSample sample = sample_of(*dataset, {.sample = i, .seed = 1, .epoch = epoch});
      const auto& targets = sample.of.at("targets");
      EXPECT_EQ(8 - std::ranges::count(targets, kIgnored), counts[i]);
      for (const std::int32_t target : targets) EXPECT_LT(target, 256);
      EXPECT_EQ(dataset->targets_before(Split::train, i + 1), static_cast<std::int64_t>(i) + 1);
    }
}

TEST(MaskedTokens, ImagesAreRefused) {
  const auto images = CaseFolder(reader_case("Images and labels are those of the files")).open();
  EXPECT_THROW(masked_tokens(images, nullptr), Error);
}

}  // namespace
}  // namespace concertina
