// Metrics of two trials are comparable if they are of the same data and in the same unit.
#include "experiments/study/results.h"

#include <gtest/gtest.h>

namespace concertina {
namespace {

/// What a run records about its evaluation.
struct Evaluated {
  const char *data, *measure;
  double tokens = 100;
};

TrialRecord trial_of(const Evaluated& run) {
  TrialRecord trial;
  trial.metrics = {{"validation_loss", 2},
                   {"validation_accuracy", 0.1},
                   {"validation_bits_per_byte", 7},
                   {"validation_tokens", run.tokens},
                   {"median_step_ms", 3}};
  if (run.data != nullptr) trial.facts["validation_data"] = run.data;
  if (run.measure != nullptr) trial.facts["validation_measure"] = run.measure;
  if (run.data == nullptr) trial.facts[kNoConfig] = "none";
  return trial;
}

/// Bits per byte are comparable across tokenizers; other metrics only for the same unit.
TEST(Measures, AreAlikeForTheSameDataUnitAndPart) {
  const char* const kData[] = {"d1", "d2", nullptr};
  const char* const kUnits[] = {"causal-lm, tokens of a", "causal-lm, tokens of b",
                                "classification"};
  int right = 0;
  for (const char* data : kData)
    for (const char* unit : kUnits)
      for (const char* other_data : kData)
        for (const char* other_unit : kUnits)
          for (const double tokens : {100.0, 50.0}) {
            const TrialRecord one = trial_of({data, unit}),
                              other = trial_of({other_data, other_unit, tokens});
            const bool same_data = data != nullptr && data == other_data;
            const bool same = same_data && unit == other_unit && tokens == 100;
            const auto alike = [&](const char* metric) {
              return why_incomparable({&one, &other}, metric).empty();
            };
            EXPECT_EQ(alike("validation_loss"), same);
            EXPECT_EQ(alike("validation_accuracy"), same);
            EXPECT_EQ(alike("validation_bits_per_byte"), same_data);
            EXPECT_TRUE(alike("median_step_ms"));
            right += same ? 1 : 0;
          }
  EXPECT_EQ(right, 6);
}

std::string why(const char* column, const Settings& one, const Settings& other) {
  TrialRecord a, b;
  a.settings = one, b.settings = other;
  a.metrics = b.metrics = {{"loss", 2}, {"tokens_per_s", 900}, {"validation_loss", 3}};
  return why_incomparable({&a, &b}, column);
}

/// Without an evaluation, nothing records the unit of a token, so the configs decide.
TEST(Measures, OfSpeedAndTrainingLossAreAlikeWhereTheConfigsAre) {
  const Settings bytes{{"data.tokenizer", "bytes"}}, words{{"data.tokenizer", "bpe"}};
  EXPECT_EQ(why("tokens_per_s", bytes, words), "the tokenizers differ");
  EXPECT_EQ(why("tokens_per_s", bytes, bytes), "");
  TrialRecord known, imported;
  known.metrics = imported.metrics = {{"tokens_per_s", 900}};
  imported.facts[kNoConfig] = "none";
  EXPECT_EQ(why_incomparable({&known, &imported}, "tokens_per_s"), "their tokens are not recorded");
}

/// Runs without digests: their settings show whether they use the same data.
TEST(Measures, WithoutADigestAreAlikeIfNoSettingOfDataDiffers) {
  for (const std::string key :
       {"parallel.pp", "optimizer.lr", "data.validation", "data.tokenizer", "data.text",
        "data.files", "eval.batches", "model.task", "model.label_smoothing", "distill.weight"})
    for (const char* column : {"loss", "validation_loss"})
      EXPECT_EQ(why(column, {{key, "1"}}, {{key, "2"}}).empty(),
                key.starts_with("parallel") || key.starts_with("optimizer"))
          << key;
}

}  // namespace
}  // namespace concertina
