// Text sources mixed by weight.
#include "io/datasets/mixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/rng.h"
#include "io/datasets/source.h"
#include "tests/io/reader_cases.h"

namespace concertina {
namespace {

/// Returns the largest deviation of a source's draws from its share, over the first `samples`.
double largest_error(const std::vector<double>& weights, std::uint64_t samples) {
  const MixOrder order(weights);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint64_t> drawn(weights.size());
  double worst = 0;
  for (std::uint64_t n = 0; n < samples; ++n) {
    const std::size_t source = order.source(n);
    EXPECT_EQ(order.before(n, source), drawn[source]) << n;
    ++drawn[source];
    for (std::size_t s = 0; s < weights.size(); ++s)
      worst = std::max(worst, std::abs(static_cast<double>(drawn[s]) -
                                       static_cast<double>(n + 1) * weights[s] / sum));
  }
  return worst;
}

TEST(MixOrder, EachSourceHasItsShareToLessThanOneSample) {
  EXPECT_LT(largest_error({0.7, 0.3}, 5000), 1);
  EXPECT_LT(largest_error({1}, 100), 1);
  EXPECT_LT(largest_error({1, 1, 1}, 1000), 1);
  std::vector<double> uneven{0.9};
  for (int i = 0; i < 19; ++i) uneven.push_back(0.1 / 20 + 1e-4 * i);
  EXPECT_LT(largest_error(uneven, 30000), 1);
  std::vector<double> many(60, 0.001);
  many.push_back(0.5), many.push_back(0.25), many.push_back(0.125);
  EXPECT_LT(largest_error(many, 20000), 1);
  const Rng rng(7, Purpose::sample);
  for (std::uint32_t trial = 0; trial < 40; ++trial) {
    std::vector<double> weights(2 + trial % 9);
    for (std::uint32_t s = 0; s < weights.size(); ++s)
      weights[s] = std::round(1 + 500 * rng.uniform(trial, s, 0, 0));
    EXPECT_LT(largest_error(weights, 6000), 1) << trial;
  }
}

TEST(MixOrder, WeightsAreTheirRatios) {
  const auto parts = [](const std::vector<double>& weights) {
    const MixOrder order(weights);
    return std::vector(order.parts().begin(), order.parts().end());
  };
  EXPECT_EQ(parts({0.7, 0.3}), (std::vector<std::uint64_t>{7, 3}));
  EXPECT_EQ(parts({70, 30}), (std::vector<std::uint64_t>{7, 3}));
  EXPECT_EQ(parts({0.25, 0.25}), (std::vector<std::uint64_t>{1, 1}));
  // Irrational ratio: approximated with the longest period, within one part of it.
  const MixOrder order(std::vector{1 / 3.0, std::sqrt(2.0)});
  EXPECT_EQ(order.period(), MixOrder::kLongestPeriod);
  EXPECT_NEAR(static_cast<double>(order.parts()[0]) / static_cast<double>(order.period()),
              1 / 3.0 / (1 / 3.0 + std::sqrt(2.0)), 3.0 / MixOrder::kLongestPeriod);
}

/// Three texts that their bytes identify, in windows of four bytes.
struct Sources : Folder {
  std::shared_ptr<const Dataset> text(const std::string& name, char first, std::size_t bytes,
                                      const std::string& windows) const {
    std::string content(bytes, first);
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(first + i % 20);
    return open_dataset({.files = {(*this)(name, content)},
                         .validation = 0.2,
                         .tokens_per_sample = 4,
                         .options = {{"windows", windows}}});
  }
  std::shared_ptr<const Mixture> mixture(const std::string& windows) const {
    return std::make_shared<const Mixture>(
        std::vector<MixSource>{{"a", text("a", 'A', 1000, windows), 0.5},
                               {"b", text("b", 'a', 101, windows), 0.3},
                               {"c", text("c", '\x01', 4001, windows), 0.2}});
  }
};

std::size_t source_of(const Mixture& mixture, std::uint64_t sample) {
  std::size_t s = 0;
  while (sample >= mixture.first(Split::train, s + 1)) ++s;
  return s;
}

TEST(Mixture, ASourceIsReadWholeBeforeItBeginsAgain) {
  const Sources folder;
  for (const std::string windows : {"fixed", "shifted"}) {
    const auto mixture = folder.mixture(windows);
    const TrainingSource source(mixture, 5, 8);
    std::map<std::pair<std::size_t, std::uint64_t>, std::set<std::uint64_t>> seen;
    std::vector<TrainingSource::Place> places;
    for (std::uint64_t n = 0; n < 3000; ++n) {
      const TrainingSource::Place at = source.place(n);
      const std::size_t s = source_of(*mixture, at.sample);
      EXPECT_EQ(s, mixture->order().source(n));
      EXPECT_TRUE(seen[std::pair(s, at.epoch)].insert(at.sample).second) << n;
      places.push_back(at);
    }
    EXPECT_TRUE(seen.contains({1, 20}) && seen.contains({0, 5}) && !seen.contains({2, 1}));
    for (const auto& [key, samples] : seen) {
      const auto& [s, epoch] = key;
      if (!seen.contains({s, epoch + 1})) continue;
      EXPECT_EQ(samples.size(),
                mixture->sources()[s].dataset->samples_of_epoch(Mixture::seed_of(5, s), epoch));
    }
    // In any order, from any object: the result depends only on the number.
    const TrainingSource other(mixture, 5, 8);
    for (const std::uint64_t n : {2999UL, 0UL, 1500UL, 1499UL, 7UL, 2998UL, 1000UL, 999UL}) {
      EXPECT_EQ(other.place(n).sample, places[n].sample) << n;
      EXPECT_EQ(other.place(n).epoch, places[n].epoch) << n;
    }
  }
}

TEST(Mixture, SamplesAreThoseOfTheirSource) {
  const Sources folder;
  const auto mixture = folder.mixture("shifted");
  for (std::uint64_t sample = 0; sample < mixture->samples(Split::train); sample += 7) {
    const std::size_t s = source_of(*mixture, sample);
    const std::uint64_t within = sample - mixture->first(Split::train, s);
    EXPECT_EQ(sample_of(*mixture, {.sample = sample, .seed = 3, .epoch = 2}).of,
              sample_of(*mixture->sources()[s].dataset,
                        {.sample = within, .seed = Mixture::seed_of(3, s), .epoch = 2})
                  .of);
  }
  std::int64_t targets = 0;
  for (const MixSource& source : mixture->sources())
    targets += source.dataset->targets(Split::validation);
  EXPECT_EQ(mixture->targets(Split::validation), targets);
}

TEST(Mixture, NotesSayHowOftenEachIsRead) {
  const Sources folder;
  const std::vector<std::string> notes = folder.mixture("fixed")->notes(1000);
  EXPECT_EQ(notes[0], "a: 50% of the samples, 500 of 1000: 2.51 epochs of its 199");
  EXPECT_EQ(notes[1], "b: 30% of the samples, 300 of 1000: 15.00 epochs of its 20");
}

TEST(Mixture, WhatCannotBeMixedIsRefused) {
  const Sources folder;
  const Tsv table;
  const auto text = folder.text("a", 'A', 100, "fixed");
  const auto mixed = [](std::vector<MixSource> sources) { const Mixture made(std::move(sources)); };
  EXPECT_ERROR(mixed({{"a", text, 1}, {"t", open_dataset(table.options), 1}}),
               "t has labels, but only text can be mixed by weight");
  EXPECT_ERROR(mixed({{"a", text, 1}, {"b", text, 1e-7}}), "the weight 1e-07 of b is not above");
  const auto longer = open_dataset({.files = {folder.path("a")},
                                    .validation = 0,
                                    .tokens_per_sample = 5,
                                    .options = {{"windows", "fixed"}}});
  EXPECT_ERROR(mixed({{"a", text, 1}, {"b", longer, 1}}), "a and b have different fields");
}

}  // namespace
}  // namespace concertina
