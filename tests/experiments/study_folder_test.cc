// A study on disk: records and results survive whatever happens to them, or are rejected with a
// message.
#include "experiments/study/study_folder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "experiments/study/study_run.h"
#include "experiments/study/trial_launch.h"
#include "io/csv.h"
#include "io/file.h"
#include "io/sha256.h"
#include "tests/errors.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStudy = "[set]\nrun.steps = 3\n[grid]\nmodel.width = [32, 64, 96]\n";

StudySpec study(const std::string& toml = kStudy) {
  return read_study_spec(toml, "s.toml", [](std::size_t, const std::string& path) { return path; });
}

TrialRecord ended(int number, double loss, TrialState state = TrialState::done) {
  TrialRecord trial;
  trial.number = number;
  trial.settings = trials_of(study())[static_cast<std::size_t>(number - 1)].settings;
  trial.state = state;
  trial.metrics = {{"loss", loss}, {"recorded.bubble", 0.1 + 0.2}};
  trial.facts = {{"layout", "pp2xdp1"}, {"note", "a, \"b\"\nc"}};
  if (state == TrialState::failed) trial.error = "error: it is broken\n  at: here";
  return trial;
}

template <class Body>
std::string refusal(const Body& body) {
  const Error error = input_error(body);
  EXPECT_FALSE(error.fix().empty());
  return error.message();
}

class StudyOnDisk : public testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/study"; }
  static void replace(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = read_file(file, 1 << 20);
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
    std::ofstream(file) << text;
  }
  TemporaryDirectory directory_;
};

TEST_F(StudyOnDisk, ResultsAreWhatWasSavedAndOpenTrialsAreThere) {
  {
    StudyFolder folder(path(), study(), kStudy);
    folder.save(ended(3, 2.5, TrialState::failed));
    folder.save(ended(1, 1.5));
    folder.settle();
  }
  const StudyResults results = read_study(path());
  ASSERT_EQ(results.trials.size(), 3u);
  EXPECT_EQ(results.axes, (std::vector<std::string>{"model.width"}));
  EXPECT_EQ(results.trials[0].metrics, ended(1, 1.5).metrics);
  EXPECT_EQ(results.trials[0].facts, ended(1, 1.5).facts);
  EXPECT_EQ(results.trials[1].state, TrialState::open);
  EXPECT_EQ(results.trials[1].settings, (Settings{{"model.width", "64"}}));
  EXPECT_EQ(results.trials[2].error, ended(3, 0, TrialState::failed).error);
  const auto rows = parse_csv(read_file(path() + "/results.csv", 1 << 20));
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->size(), 3u) << "the columns and two trials";
}

TEST_F(StudyOnDisk, AnotherStudyIsRefusedAndItsOwnGoesOn) {
  { StudyFolder(path(), study(), kStudy).save(ended(1, 1.5)); }
  const std::string other = "[set]\nrun.steps = 4\n[grid]\nmodel.width = [32, 64, 96]\n";
  expect_has(refusal([&] { StudyFolder(path(), study(other), other); }), "another study");
  EXPECT_EQ(read_file(path() + "/study.toml", 1 << 20), kStudy);
  const std::string more = std::string("# the same\n") + kStudy + "[launch]\njobs = 2\n";
  EXPECT_EQ(StudyFolder(path(), study(more), more).trials().size(), 1u);
  EXPECT_EQ(read_study(path()).trials.size(), 3u);
}

TEST_F(StudyOnDisk, TwoProcessesDoNotRunOneStudy) {
  const StudyFolder folder(path(), study(), kStudy);
  expect_has(refusal([&] { StudyFolder(path(), study(), kStudy); }), "this study");
}

TEST_F(StudyOnDisk, AFolderThatIsNoStudyIsLeftAlone) {
  fs::create_directory(path());
  std::ofstream(path() + "/thesis.tex") << "words";
  expect_has(refusal([&] { StudyFolder(path(), study(), kStudy); }), "does not contain a study");
  EXPECT_FALSE(fs::exists(path() + "/study.toml"));
  expect_has(refusal([&] { read_study(path()); }), "not the folder of a study");
}

TEST_F(StudyOnDisk, WhatSomebodyEditedIsNamedAndNeverOverwritten) {
  { StudyFolder(path(), study(), kStudy).save(ended(1, 1.5)); }
  replace(path() + "/results.csv", "1.5", "1.4");
  const std::string edited = read_file(path() + "/results.csv", 1 << 20);
  const auto open = [&] { StudyFolder(path(), study(), kStudy); };
  expect_has(refusal(open), "loss of trial 1 is '1.4' but the record has '1.5'");
  refusal([&] { read_study(path()); });
  EXPECT_EQ(read_file(path() + "/results.csv", 1 << 20), edited);
  fs::remove(path() + "/results.csv");
  open();
  EXPECT_TRUE(fs::exists(path() + "/results.csv")) << "written again from the records";
  replace(path() + "/1/trial.json", "1.5", "1.4");
  expect_has(refusal(open), "the trial's record was edited");
}

TEST_F(StudyOnDisk, AKillBetweenRecordAndResultsIsNoEdit) {
  const std::string results = path() + "/results.csv", digests = path() + "/results.sha256";
  std::string before, digests_before;
  {
    StudyFolder folder(path(), study(), kStudy);
    folder.save(ended(1, 1.5));
    before = read_file(results, 1 << 20);
    digests_before = read_file(digests, 1 << 20);
    folder.save(ended(2, 1.25));
  }
  std::ofstream(results) << before;  // the second record exists, its line does not
  std::ofstream(digests) << digests_before;
  EXPECT_EQ(read_study(path()).trials[1].state, TrialState::done);
  StudyFolder folder(path(), study(), kStudy);
  EXPECT_NE(read_file(results, 1 << 20), before);
  before = read_file(results, 1 << 20);
  folder.reopen({2});
  std::ofstream(results) << before;  // the record is removed, the line still exists
  EXPECT_EQ(read_study(path()).trials[1].state, TrialState::open);
}

TEST_F(StudyOnDisk, LinesAndColumnsThatSomebodyTookOutDoubledOrMovedAreMissed) {
  {
    StudyFolder folder(path(), study(), kStudy);
    for (const int number : {3, 1, 2}) folder.save(ended(number, 1.5));
    folder.settle();
  }
  const std::string results = path() + "/results.csv";
  const std::string whole = read_file(results, 1 << 20);
  auto rows = *parse_csv(whole);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1][0] + rows[2][0] + rows[3][0], "123") << "in the order of trials";
  std::vector<std::string> edits = {whole.substr(0, whole.size() - 9)};
  for (const std::vector<std::size_t>& lines :
       {std::vector<std::size_t>{0, 1, 2}, {0, 1, 3}, {0}, {0, 1, 2, 2, 3}, {0, 2, 1, 3}}) {
    std::string& edited = edits.emplace_back();
    for (const std::size_t line : lines) edited += csv_line(rows[line]);
  }
  std::string& no_column = edits.emplace_back();
  for (std::vector<std::string>& row : rows) {
    row.erase(row.begin() + 3);
    no_column += csv_line(row);
  }
  for (const std::string& edited : edits) {
    std::ofstream(results) << edited;
    expect_has(refusal([&] { StudyFolder(path(), study(), kStudy); }), "was edited");
    refusal([&] { read_study(path()); });
    EXPECT_EQ(read_file(results, 1 << 20), edited);
  }
  std::ofstream(results) << whole;
  EXPECT_EQ(StudyFolder(path(), study(), kStudy).trials().size(), 3u);
}

TEST_F(StudyOnDisk, AnEditWhileTheStudyRunsStaysAndIsNamed) {
  const std::string results = path() + "/results.csv";
  for (const char* edit : {"1.4", "1.45"}) {
    StudyFolder folder(path(), study(), kStudy);
    folder.save(ended(1, 1.5));
    replace(results, "1.5", edit);
    const std::string edited = read_file(results, 1 << 20);
    TrialRecord wider = ended(2, 1.5);
    wider.metrics["one_more"] = 1;
    folder.save(wider);
    EXPECT_EQ(read_file(results, 1 << 20), edited);
    expect_has(refusal([&] { folder.settle(); }), "while the study ran");
    fs::remove(results);
    folder.settle();
    EXPECT_TRUE(fs::exists(results));
  }
}

/// The launch was killed between its last checkpoint and its result; the next one trained nothing.
TEST_F(StudyOnDisk, FiguresOfStepsThatNoLaunchReportedAreThoseOfTheLog) {
  TrialRecord record;
  record.directory = directory_.path();
  std::ofstream(record.directory + "/result.json") << R"({"steps": 2, "validation_loss": 4.5})";
  std::ofstream(record.directory + "/metrics.jsonl")
      << R"({"step":1,"loss":5.5,"lr":0.1,"grad_norm":2,"tokens_per_s":100,"step_ms":20,"bubble":0.5,"peak_bytes":64})"
      << "\n"
      << R"({"step":2,"loss":5.25,"lr":0.2,"grad_norm":1,"tokens_per_s":100,"step_ms":40,"bubble":0.5,"peak_bytes":64})"
      << "\n";
  harvest(record);
  EXPECT_EQ(record.metrics["loss"], 5.25);
  EXPECT_EQ(record.metrics["grad_norm"], 1);
  EXPECT_EQ(record.metrics["peak_bytes"], 64);
  EXPECT_EQ(record.metrics["validation_loss"], 4.5);
  EXPECT_DOUBLE_EQ(record.metrics["median_step_ms"], 30);
  EXPECT_DOUBLE_EQ(record.metrics["tokens_per_s"], 100);
}

TEST(TrialJson, AFigureThatIsNoNumberIsStillOne) {
  TrialRecord trial = ended(2, std::numeric_limits<double>::quiet_NaN(), TrialState::done);
  trial.rungs = {{9, std::numeric_limits<double>::infinity()}};
  const TrialRecord back = read_record(record_text(trial), "t");
  EXPECT_TRUE(std::isnan(back.metrics.at("loss")));
  EXPECT_TRUE(std::isnan(back.rungs.at(0).metric)) << "JSON has no infinity either";
}

/// Signed as by the study, but with values that it never writes.
TEST(TrialJson, AValueOfAnotherTypeIsAnError) {
  for (
      const char* record :
      {R"({"trial":null,"state":"done","settings":{},"directory":"d","figures":{},"facts":{}})",
       R"({"trial":1,"state":"done","settings":{},"directory":"d","figures":{"loss":"x"},"facts":{}})",
       R"({"trial":1,"state":"done","settings":{},"directory":"d","figures":{},"facts":[1]})",
       R"({"trial":1,"state":"done"})"}) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(record);
    json["digest"] = sha256_hex(json.dump());
    EXPECT_THROW(read_record(json.dump(2), "t"), Error) << record;
  }
  nlohmann::ordered_json right = nlohmann::ordered_json::parse(
      R"({"trial":1,"state":"done","settings":{},"directory":"d","figures":{},"facts":{}})");
  right["digest"] = sha256_hex(right.dump());
  EXPECT_NO_THROW(read_record(right.dump(2), "t"));
}

TEST(TrialJson, IsReadBackAndEveryEditIsFound) {
  TrialRecord trial = ended(2, -0.0, TrialState::stopped);
  trial.rungs = {{9, 3.25}, {27, 1e-300}};
  const std::string text = record_text(trial);
  const TrialRecord back = read_record(text, "t");
  EXPECT_EQ(back.metrics, trial.metrics);
  EXPECT_EQ(back.facts, trial.facts);
  EXPECT_EQ(back.settings, trial.settings);
  EXPECT_EQ(back.rungs, trial.rungs);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string edited = text;
    edited[i] = edited[i] == '7' ? '8' : '7';
    try {
      const TrialRecord other = read_record(edited, "t");
      EXPECT_EQ(record_text(other), text) << "byte " << i << " is an edit that was not detected";
    } catch (const Error&) {
    }
  }
}

TEST(Csv, GivesBackWhateverIsInACell) {
  rc::check([](const std::vector<std::string>& texts) {
    std::vector<std::string> cells = texts;
    cells.emplace_back("end");
    for (std::string& cell : cells) std::erase(cell, '\r');
    const auto rows = parse_csv(csv_line(cells) + csv_line({"next"}));
    RC_ASSERT(rows.has_value());
    RC_ASSERT(rows->size() == 2u);
    RC_ASSERT(rows->front() == cells);
  });
  EXPECT_FALSE(parse_csv("a,\"b\n"));
}

TEST(Launcher, PutsArgumentsWhereTheTemplateWantsThem) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(launch_words("mpirun -n {ranks} {program} {args}", 3, "/p q", {"train", "@a b.toml"}),
            (Words{"mpirun", "-n", "3", "/p q", "train", "@a b.toml"}));
  EXPECT_EQ(launch_words("bash -c 'X=${Y} {program} {args}; echo {}'", 1, "p", {"a b", "c'd"}),
            (Words{"bash", "-c", R"(X=${Y} p 'a b' 'c'\''d'; echo {})"}));
  EXPECT_THROW(split_words("a 'b", "here"), Error);
  EXPECT_THROW(split_words("  ", "here"), Error);
}

TEST(Launcher, RefusesWhatStandsForNothing) {
  const auto words = [](const std::string& command) { return launch_words(command, 1, "p", {}); };
  expect_has(refusal([&] { words("mpirun -n {rank} {program}"); }), "{rank}");
  const std::vector<std::string> shell = {"sh", "-c", "a=${rank} {1..2} {a,b} { true; } {}"};
  EXPECT_EQ(words("sh -c 'a=${rank} {1..2} {a,b} { true; } {}'"), shell);
  expect_has(refusal([] { study("[launch]\ncommand = \"\"\n"); }), "command is empty");
}

TEST(ErrorInLog, IsOfThisLaunchAndTakesNoMoreThanTheEnd) {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  std::ofstream(log) << "concertina: error: old\n  at: here\nnew\n";
  EXPECT_EQ(error_in_log(log), "error: old; at: here");
  EXPECT_EQ(error_in_log(log, read_file(log, 1 << 20).find("new")), "new");
  constexpr std::uint64_t kBytes = std::uint64_t{300} << 20;
  fs::resize_file(log, kBytes);  // zeros without a line break
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kib();
  EXPECT_LT(error_in_log(log).size(), 1u << 14);
  EXPECT_LT(peak_kib() - before, 100 << 10);
}

TEST(CoreBudget, NeverGivesACoreTwice) {
  rc::check([](const std::vector<std::uint8_t>& wishes) {
    CoreBudget budget({0, 2, 4, 6, 8, 10});
    std::vector<std::vector<int>> given;
    for (const std::uint8_t wish : wishes) {
      if (wish % 3 == 0 && !given.empty()) {
        budget.give_back(given.front());
        given.erase(given.begin());
      } else if (const auto cores = budget.take(wish % 9)) {
        RC_ASSERT(static_cast<int>(cores->size()) == std::clamp(wish % 9, 1, 6));
        given.push_back(*cores);
      }
      std::set<int> all;
      std::size_t count = 0;
      for (const std::vector<int>& cores : given) {
        all.insert(cores.begin(), cores.end());
        count += cores.size();
      }
      RC_ASSERT(all.size() == count);
    }
  });
}

}  // namespace
}  // namespace concertina
