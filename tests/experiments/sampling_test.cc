#include "experiments/evaluate/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/rng.h"
#include "tests/errors.h"

namespace concertina {
namespace {

const std::vector<float> kLogits{0.5F, 2.0F, -1.0F, 1.5F, 2.0F, -3.0F};

/// Expects the shares of 10,000 draws to fit probabilities, by the chi-square test at 1e-4.
void expect_drawn(const GenerateSection& options, const std::map<std::int32_t, double>& weights,
                  const std::vector<std::int32_t>& text = {}) {
  constexpr int kDraws = 10000;
  constexpr double kMost[] = {0, 15.1, 18.4, 21.1, 23.5, 25.7};  // by degrees of freedom
  const Rng random(3, Purpose::sample);
  std::map<std::int32_t, int> counts;
  for (std::uint32_t i = 0; i < kDraws; ++i)
    ++counts[sample_token(kLogits, text, options, random.uniform(i, 0, 0, 0)).token];
  double all = 0, square = 0;
  for (const auto& [token, weight] : weights) all += weight;
  for (const auto& [token, weight] : weights) {
    const double expected = kDraws * weight / all, difference = counts[token] - expected;
    square += difference * difference / expected;
  }
  EXPECT_EQ(counts.size(), weights.size());
  EXPECT_LE(square, kMost[weights.size() - 1]);
}

std::map<std::int32_t, double> weights_of(const std::vector<std::int32_t>& tokens,
                                          double temperature = 1) {
  std::map<std::int32_t, double> weights;
  for (const std::int32_t token : tokens)
    weights[token] =
        std::exp(static_cast<double>(kLogits[static_cast<std::size_t>(token)]) / temperature);
  return weights;
}

GenerateSection options_of(double temperature) {
  GenerateSection options;
  options.temperature = temperature;
  return options;
}

TEST(Sampling, DrawsFromTheSoftmax) {
  expect_drawn(options_of(1), weights_of({0, 1, 2, 3, 4, 5}));
  expect_drawn(options_of(2.5), weights_of({0, 1, 2, 3, 4, 5}, 2.5));
}

TEST(Sampling, KeepsTheMostLikelyTokens) {
  GenerateSection options = options_of(1);
  options.top_k = 1;  // two tokens are equally likely
  expect_drawn(options, weights_of({1, 4}));
  options.top_k = 3;
  expect_drawn(options, weights_of({1, 3, 4}));
  options.top_k = 100;
  expect_drawn(options, weights_of({0, 1, 2, 3, 4, 5}));
}

TEST(Sampling, KeepsTheNucleus) {
  GenerateSection options = options_of(1);
  options.top_p = 0.8;  // the three most likely have 0.35, 0.35 and 0.21
  expect_drawn(options, weights_of({1, 3, 4}));
  options.top_p = 0.6;
  expect_drawn(options, weights_of({1, 4}));
  options.top_p = 1e-9;
  expect_drawn(options, weights_of({1}));
}

TEST(Sampling, DropsUnlikelyTokens) {
  GenerateSection options = options_of(1);
  options.min_p = 0.5;  // of the most likely one
  expect_drawn(options, weights_of({1, 3, 4}));
  options.min_p = 1;
  expect_drawn(options, weights_of({1, 4}));
}

TEST(Sampling, PenalizesTokensOfTheText) {
  GenerateSection options = options_of(1);
  options.repetition_penalty = 2;
  std::map<std::int32_t, double> weights = weights_of({0, 1, 2, 3, 4, 5});
  weights[4] = std::exp(1.0), weights[2] = std::exp(-2.0);
  expect_drawn(options, weights, {4, 4, 2, 100});
  options.temperature = 0;
  EXPECT_EQ(sample_token(kLogits, std::vector{1, 4}, options, 0.9).token, 3);
}

TEST(Sampling, TakesTheFirstOfTheMostLikelyAtTemperature0) {
  const SampledToken sampled = sample_token(kLogits, {}, options_of(0), 0.99);
  EXPECT_EQ(sampled.token, 1);
  double sum = 0;
  for (const float logit : kLogits) sum += std::exp(static_cast<double>(logit));
  EXPECT_NEAR(sampled.log_probability, 2 - std::log(sum), 1e-12);
}

TEST(Sampling, ReportsPredictionsThatAreNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    expect_has(thrown_by([&] {
                 sample_token(std::vector{0.0F, bad}, {}, options_of(1), 0);
               }).what(),
               "not finite");
}

}  // namespace
}  // namespace concertina
