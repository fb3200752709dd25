// Compares the metrics of tasks with scikit-learn's (tests/golden/make_metrics.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "experiments/evaluate/metrics.h"

namespace concertina {
namespace {

nlohmann::json golden() {
  std::ifstream file(CONCERTINA_GOLDEN "/metrics.json");
  return nlohmann::json::parse(file);
}

void expect_metrics(const std::vector<Metric>& metrics, const nlohmann::json& expected) {
  EXPECT_EQ(metrics.size(), expected.size());
  for (const Metric& metric : metrics) {
    ASSERT_TRUE(expected.contains(metric.name)) << metric.name;
    EXPECT_NEAR(metric.value, expected[metric.name].get<double>(), 1e-14) << metric.name;
  }
}

TEST(ClassMetrics, AreThoseOfScikitLearn) {
  int cases = 0;
  const nlohmann::json all = golden();
  for (const nlohmann::json& one : all["classes"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    Confusion confusion(one["classes"].get<std::size_t>());
    for (std::size_t i = 0; i < one["labels"].size(); ++i)
      ++confusion.at(one["labels"][i].get<std::size_t>(), one["predictions"][i].get<std::size_t>());
    for (std::size_t label = 0; label < confusion.classes; ++label)
      for (std::size_t predicted = 0; predicted < confusion.classes; ++predicted)
        EXPECT_EQ(confusion.at(label, predicted),
                  one["confusion"][label][predicted].get<std::int64_t>());
    expect_metrics(class_metrics(confusion), one["figures"]);
    ++cases;
  }
  EXPECT_GE(cases, 7);
}

std::vector<double> numbers_of(const nlohmann::json& one, const char* name) {
  return one[name].get<std::vector<double>>();
}

TEST(ScoreMetrics, AreThoseOfScipyAndScikitLearn) {
  const nlohmann::json all = golden();
  for (const auto& [kind, metrics] :
       {std::pair("scores", &regression_metrics), std::pair("labels", &label_set_metrics)}) {
    EXPECT_GE(all[kind].size(), 4U);
    for (const nlohmann::json& one : all[kind]) {
      SCOPED_TRACE(one["name"].get<std::string>());
      expect_metrics(metrics(numbers_of(one, "told"), numbers_of(one, "right"), one["columns"]),
                     one["figures"]);
    }
  }
}

/// Counts entities as seqeval does by default.
TEST(EntityMetrics, AreOfWholeNames) {
  const std::vector<std::string> names{"B-LOC", "B-PER", "I-LOC", "I-PER", "O"};
  enum : std::size_t { B_LOC, B_PER, I_LOC, I_PER, O };
  const std::vector<TaggedPair> sentences{
      {.predicted = {B_PER, I_PER, O, B_LOC}, .right = {B_PER, I_PER, O, B_LOC}},  // 2 of 2
      {.predicted = {B_PER, O, O}, .right = {B_PER, I_PER, O}},                    // too short
      {.predicted = {I_LOC, I_LOC, I_PER}, .right = {B_LOC, I_LOC, B_PER}},  // 2 of 2: I may start
      {.predicted = {B_LOC, B_LOC}, .right = {B_LOC, I_LOC}},                // 2 for 1
      {.predicted = {O, O}, .right = {O, B_PER}}};
  const std::vector<Metric> metrics = entity_metrics(sentences, names);
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_DOUBLE_EQ(metrics[0].value, 4.0 / 7);  // 7 predicted
  EXPECT_DOUBLE_EQ(metrics[1].value, 4.0 / 7);  // 7 exist
  EXPECT_DOUBLE_EQ(metrics[2].value, 4.0 / 7);
  EXPECT_TRUE(entity_metrics(sentences, std::vector<std::string>{"0", "1", "2", "3", "4"}).empty());
}

TEST(ClassMetrics, HaveExactCountsOfManySamples) {
  Confusion confusion(2);
  confusion.at(0, 0) = confusion.at(1, 1) = 400'000'000;
  confusion.at(0, 1) = 1;
  const std::vector<Metric> metrics = class_metrics(confusion);
  EXPECT_EQ(metrics[0].value, 800'000'000.0 / 800'000'001.0);
  EXPECT_LT(metrics.back().value, 1);
  EXPECT_GT(metrics.back().value, 0.999999995);
}

}  // namespace
}  // namespace concertina
