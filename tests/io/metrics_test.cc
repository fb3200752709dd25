// metrics.jsonl and result.json have complete lines and, after a resume, each step once.
#include "io/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "core/error.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

using nlohmann::json;

class Metrics : public testing::Test {
 protected:
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> found;
    std::istringstream lines(slurp(path_));
    for (std::string line; std::getline(lines, line);) found.push_back(json::parse(line)["step"]);
    return found;
  }
  void write(std::int64_t first, std::int64_t last, std::int64_t resumed_at) const {
    JsonLines lines(path_, resumed_at);
    StepMetrics metrics;
    metrics.loss = 1.5;
    for (metrics.step = first; metrics.step <= last; ++metrics.step) lines.write(to_json(metrics));
  }

  TemporaryDirectory root_;
  std::string path_ = root_.path() + "/metrics.jsonl";
};

TEST_F(Metrics, AnyHistoryOfKillsAndResumesShowsEachStepOnce) {
  Random random(31);
  for (int round = 0; round < 8; ++round) {
    spill(path_, "");
    std::int64_t done = 0, checkpoint = 0;
    while (done < 60) {
      done = checkpoint + draw(random, 1, 20);
      write(checkpoint + 1, done, checkpoint);
      std::vector<std::int64_t> expected(static_cast<std::size_t>(done));
      for (std::int64_t i = 0; i < done; ++i) expected[i] = i + 1;
      ASSERT_EQ(steps(), expected);
      checkpoint = draw(random, checkpoint, done);
      // The kill truncated a line.
      if (draw(random, 0, 1) == 1) spill(path_, slurp(path_) + R"({"step":)");
    }
  }
}

TEST_F(Metrics, AnIntactFileIsContinuedByteByByte) {
  write(1, 5, 0);
  const std::string before = slurp(path_);
  write(6, 5, 5);
  EXPECT_EQ(slurp(path_), before);
}

TEST_F(Metrics, ForeignLinesAreDroppedAndLinesWithoutAStepKept) {
  spill(path_,
        "{\"step\":1}\nnot json\n[2]\n\n{\"event\":\"start\"}\n{\"step\":9}\n{\"step\":2}\n\xff\n");
  JsonLines(path_, 3);
  EXPECT_EQ(slurp(path_), "{\"step\":1}\n{\"event\":\"start\"}\n{\"step\":2}\n");
}

TEST_F(Metrics, LineHasAllFiguresAndNoNaN) {
  StepMetrics metrics{7,         2.25, 1e-3, std::numeric_limits<double>::infinity(),
                      100,       2.5,  0.25, 1 << 20,
                      "pp2xdp2", 5};
  metrics.loss = std::nan("");
  metrics.time = "2026-11-22T02:15:09.042Z";
  JsonLines(path_, 0).write(to_json(metrics));
  const std::string line = slurp(path_);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const json object = json::parse(line);
  EXPECT_TRUE(object.at("loss").is_null());
  EXPECT_TRUE(object.at("grad_norm").is_null());
  EXPECT_EQ(object.at("step"), 7);
  EXPECT_EQ(object.at("lr"), 1e-3);
  EXPECT_EQ(object.at("peak_bytes"), 1 << 20);
  EXPECT_EQ(object.at("layout"), "pp2xdp2");
  EXPECT_EQ(object.at("frozen_units"), 5);
  // Values that differ between equal runs are at the end, where they can be cut off.
  EXPECT_TRUE(line.ends_with(R"(,"time":"2026-11-22T02:15:09.042Z"})"
                             "\n"))
      << line;
}

TEST_F(Metrics, ResultIsReplacedWholeAndSurvivesBadText) {
  const std::string path = root_.path() + "/result.json";
  write_result(path, {{"loss", 2.5}, {"name", std::string(1000, 'x')}});
  write_result(path, {{"loss", 1.5}, {"name", "\xff"}});
  EXPECT_EQ(json::parse(slurp(path)), (json{{"loss", 1.5}, {"name", "\xef\xbf\xbd"}}));
}

TEST_F(Metrics, APathThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(JsonLines(root_.path() + "/none/metrics.jsonl", 0), Error);
  EXPECT_THROW(write_result(root_.path() + "/none/result.json", {}), Error);
}

}  // namespace
}  // namespace concertina
