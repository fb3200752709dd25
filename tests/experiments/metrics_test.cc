// Figures that tasks count of predictions, against scikit-learn's (tests/golden/make_metrics.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "experiments/evaluate/class_counts.h"

namespace concertina {
namespace {

nlohmann::json golden() {
  std::ifstream file(CONCERTINA_GOLDEN "/metrics.json");
  return nlohmann::json::parse(file);
}

void expect_figures(const std::vector<Metric>& metrics, const nlohmann::json& expected) {
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
      for (std::size_t told = 0; told < confusion.classes; ++told)
        EXPECT_EQ(confusion.at(label, told), one["confusion"][label][told].get<std::int64_t>());
    expect_figures(class_metrics(confusion), one["figures"]);
    ++cases;
  }
  EXPECT_GE(cases, 7);
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
