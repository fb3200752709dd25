#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "core/error.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/study_table.h"
#include "experiments/study/measures.h"
#include "io/csv.h"

namespace concertina {
namespace {

TrialRecord& add(StudyResults& results, Settings settings, std::map<std::string, double> figures) {
  TrialRecord& trial = results.trials.emplace_back();
  trial.number = static_cast<int>(results.trials.size());
  trial.settings = std::move(settings);
  trial.state = TrialState::done;
  trial.figures = std::move(figures);
  trial.facts = {
      {"version", "0.1.0"}, {"commit", "abc"}, {"processor", "Zen 5"}, {"isa", "avx512"}};
  return trial;
}

/// Three schedules at three seeds: a loss of the seed alone, a rate of both.
StudyResults schedules() {
  StudyResults results;
  results.name = "schedules";
  results.directory = "studies/schedules";
  results.axes = {"parallel.schedule", "run.seed"};
  const double rates[3][3] = {{25000, 26000, 27500}, {26100, 27200, 28400}, {20000, 24000, 22000}};
  const char* names[] = {"1f1b", "zb-v", "gpipe"};
  for (std::size_t s = 0; s < 3; ++s)
    for (std::size_t seed = 0; seed < 3; ++seed)
      add(results, {{"parallel.schedule", names[s]}, {"run.seed", std::to_string(seed + 1)}},
          {{"loss", 3.3 + 0.0312345 * static_cast<double>(seed)},
           {"tokens_per_s", rates[s][seed]},
           {"peak_bytes", s == 0 ? 6767432 : 9123456}})
          .facts["state_sha256"] = std::string(64, static_cast<char>('a' + seed));
  return results;
}

TableOptions against(const char* baseline) {
  TableOptions options;
  options.baseline = {baseline};
  return options;
}

std::string text_of(const StudyResults& results, const TableOptions& options = {},
                    TableFormat format = TableFormat::text, TableCells cells = TableCells::full) {
  return table_text(make_table(results, options), format, cells);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool has_line(const std::vector<std::string>& lines, const std::string& line) {
  return std::ranges::find(lines, line) != lines.end();
}

/// The message, place and advice of the error that `run` throws.
template <class Run>
std::string refusal(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return error.message() + " @ " + error.where() + " @ " + error.fix();
  }
  return "accepted";
}

TEST(StudyTable, IsARowAGroupWithSpreadAndDifferences) {
  EXPECT_EQ(text_of(schedules(), against("parallel.schedule=1f1b")),
            R"(study schedules: 3 groups, 9 of 9 trials done

Schedule    n    Training loss ↓     Tokens/s ↑             Peak memory (MiB) ↓
1f1b        3    3.331 ± 0.031       26,167 ± 1,258       > 6.4539 ± 0
(baseline)       [3.254 to 3.409]    [23,041 to 29,292]
zb-v        3    3.331 ± 0.031     > 27,233 ± 1,150         8.7008 ± 0
                 [3.254 to 3.409]    [24,376 to 30,091]     Δ +2.2469, p < 0.001 *
                 Δ 0, p 1            Δ +1,067, p 0.014 *
gpipe       3    3.331 ± 0.031       22,000 ± 2,000         8.7008 ± 0
                 [3.254 to 3.409]    [17,032 to 26,968]     Δ +2.2469, p < 0.001 *
                 Δ 0, p 1            Δ -4,167, p 0.062

↓ lower is better, ↑ higher is better; the best mean is marked
mean ± standard deviation, [95% interval of the mean] by Student's t; n: trials that are done
Δ: difference to 1f1b; paired t test over 3 pairs of the same Seed; two-sided p with Holm's correction for 2 comparisons per metric, *: p < 0.05
loss and state_sha256: the same bits in all 3 groups of parallel.schedule for each of 3 seeds
)");
}

TEST(StudyTable, PValuesAreCorrectedForTheirNumber) {
  // Two comparisons of each metric: single p of 0.0068 and 0.062 (t = 12.06 and 3.83 at 2 degrees).
  StudyTable table = make_table(schedules(), against("parallel.schedule=1f1b"));
  const TableCell &zb_v = table.rows[1].cells[1], &gpipe = table.rows[2].cells[1];
  EXPECT_NEAR(zb_v.difference->p.value(), 0.0067666, 1e-7);
  EXPECT_DOUBLE_EQ(zb_v.p.value(), 2 * zb_v.difference->p.value());
  EXPECT_DOUBLE_EQ(gpipe.p.value(), gpipe.difference->p.value());
  TableOptions options = against("parallel.schedule=1f1b");
  options.correction = PCorrection::none;
  table = make_table(schedules(), options);
  EXPECT_EQ(table.rows[1].cells[1].p, table.rows[1].cells[1].difference->p);
  EXPECT_TRUE(has(table.comparison, "two-sided p without correction for 2 comparisons"));
  // One comparison has nothing to correct.
  options = against("parallel.schedule=1f1b");
  options.where = {"parallel.schedule=1f1b", "parallel.schedule=zb-v"};
  table = make_table(schedules(), options);
  EXPECT_EQ(table.rows[1].cells[1].p, table.rows[1].cells[1].difference->p);
  EXPECT_TRUE(table.comparison.ends_with("two-sided p")) << table.comparison;
  EXPECT_TRUE(has(refusal([] { p_correction("bonferroni"); }), "@ --correction @ one of: none"));
}

TEST(StudyTable, ComparesWithTheFirstGroupWhereTrialsRepeat) {
  StudyTable table = make_table(schedules(), {});
  EXPECT_EQ(table.baseline, "1f1b");
  EXPECT_TRUE(table.rows[0].baseline && table.rows[2].cells[0].difference);
  TableOptions options;
  options.baseline = {"none"};
  EXPECT_EQ(make_table(schedules(), options).baseline, "");
  options = {};
  options.where = {"run.seed=1"};
  EXPECT_EQ(make_table(schedules(), options).baseline, "");
  StudyResults results = schedules();
  results.metric = "loss";
  EXPECT_EQ(make_table(results, {}).baseline, "");
}

TEST(StudyTable, CellsSayAsMuchAsAPaperWants) {
  const auto line = [](TableCells cells) {
    TableOptions options = against("parallel.schedule=1f1b");
    options.metrics = {"tokens_per_s"};
    const std::string text = text_of(schedules(), options, TableFormat::markdown, cells);
    const std::size_t at = text.find("| zb-v");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(line(TableCells::mean_sd), "| zb-v | 3 | **27,233** ± 1,150 \\* |");
  EXPECT_EQ(line(TableCells::mean_ci), "| zb-v | 3 | **27,233** [24,376 to 30,091] \\* |");
  EXPECT_EQ(line(TableCells::difference),
            "| zb-v | 3 | **27,233** ± 1,150<br>Δ +1,067, p 0.014 \\* |");
  EXPECT_TRUE(has(text_of(schedules(), against("parallel.schedule=1f1b"), TableFormat::latex,
                          TableCells::mean_sd),
                  "noindent {*}: p $<$ 0.05 for the difference to 1f1b; paired t test"));
  EXPECT_TRUE(has(refusal([] { table_cells_kind("sd"); }), "@ --cells @"));
}

TEST(StudyTable, MetricsThatDoNotFitInALineGoBelow) {
  StudyResults results = schedules();
  TableOptions options;
  for (int i = 0; i < 6; ++i) {
    options.metrics.push_back(fmt::format("a_figure_with_a_long_name_{}", i));
    for (TrialRecord& trial : results.trials)
      trial.figures[options.metrics.back()] = i + trial.number;
  }
  std::istringstream lines(text_of(results, options));
  std::size_t widest = 0, groups = 0, heads = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("mean")) break;
    widest = std::max(widest, line.size());
    groups += line.starts_with("zb-v");
    for (std::size_t at = 0; (at = line.find("a_figure_with_a_long_name", at)) != line.npos; ++at)
      ++heads;
  }
  EXPECT_LE(widest, 145u);  // bytes
  EXPECT_EQ(groups, 2u);
  EXPECT_EQ(heads, 6u);
  results.trials.clear();
  options.metrics.clear();
  EXPECT_TRUE(has(text_of(results, options), "Schedule  n\n"));
}

TEST(StudyTable, IsTheSameBytesWhateverOrderTrialsFinishedIn) {
  StudyResults results = schedules();
  results.trials[4].figures["loss"] = std::nan("");
  results.trials[7].state = TrialState::failed;
  results.trials[2].facts["state_sha256"] = "0";
  const StudyTable table = make_table(results, against("parallel.schedule=zb-v"));
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i) {
    std::ranges::shuffle(results.trials, random);
    const StudyTable other = make_table(results, against("parallel.schedule=zb-v"));
    EXPECT_EQ(to_json(other).dump(), to_json(table).dump());
    for (const auto format :
         {TableFormat::text, TableFormat::csv, TableFormat::markdown, TableFormat::latex})
      EXPECT_EQ(table_text(other, format, TableCells::full),
                table_text(table, format, TableCells::full));
  }
}

TEST(StudyTable, NamesTrialsThatAreNotDone) {
  StudyResults results = schedules();
  results.trials[3].state = results.trials[4].state = results.trials[5].state = TrialState::failed;
  results.trials[3].error = results.trials[5].error = "error: no memory\n  at: rank 3";
  results.trials[6].state = TrialState::timed_out;
  results.trials[7].state = results.trials[8].state = TrialState::open;
  const StudyTable table = make_table(results, against("parallel.schedule=1f1b"));
  ASSERT_EQ(table.rows.size(), 3u);  // zb-v without a trial is a row all the same
  EXPECT_TRUE(table.rows[1].trials.empty());
  EXPECT_EQ(table.rows[1].others, 3);
  const std::string text = table_text(table, TableFormat::text, TableCells::full);
  EXPECT_TRUE(has(text, "study schedules: 3 groups, 3 of 9 trials done\n")) << text;
  EXPECT_TRUE(has(text,
                  "failed: trials 4,6: error: no memory\n  at: rank 3\n"
                  "failed: trial 5 (parallel.schedule=zb-v run.seed=2)\n"))
      << text;
  EXPECT_TRUE(has(text, "timeout: trial 7 (parallel.schedule=gpipe run.seed=1)\n")) << text;
  EXPECT_TRUE(has(text, "open: trials 8-9\n")) << text;
  EXPECT_FALSE(has(text, ">")) << "a best of one group: " << text;
  EXPECT_EQ(to_json(table)["not_done"].size(), 6u);
}

TEST(StudyTable, AStudyWithoutATrialThatIsDoneStillSaysSo) {
  StudyResults results = schedules();
  for (TrialRecord& trial : results.trials) trial.state = TrialState::open, trial.figures.clear();
  const std::string text = text_of(results);
  EXPECT_TRUE(has(text, "3 groups, 0 of 9 trials done")) << text;
  EXPECT_TRUE(has(text, "open: trials 1-9")) << text;
  results.trials.clear();
  EXPECT_TRUE(has(text_of(results), "0 groups, 0 of 0 trials done"));
}

TEST(StudyTable, LeavesOutAndNamesValuesThatAreNotFinite) {
  StudyResults results = schedules();
  results.trials[3].figures["loss"] = std::nan("");
  results.trials[4].figures["loss"] = std::numeric_limits<double>::infinity();
  results.trials[8].figures.erase("loss");
  const StudyTable table = make_table(results, against("parallel.schedule=1f1b"));
  EXPECT_EQ(table.rows[1].cells[0].summary.n, 1);
  EXPECT_EQ(table.rows[1].cells[0].summary.mean, results.trials[5].figures["loss"]);
  EXPECT_EQ(table.rows[2].cells[0].missing, 1);
  EXPECT_TRUE(has_line(table.notes, "Training loss: NaN in trial 4, left out"));
  EXPECT_TRUE(has_line(table.notes, "Training loss: infinite in trial 5, left out"));
  EXPECT_TRUE(has_line(table.notes, "Training loss: no finite value in trial 9, left out"));
  EXPECT_EQ(table.rows[2].cells[0].difference->pairs, 2);
  EXPECT_TRUE(has(table_text(table, TableFormat::text, TableCells::full), "3.362 (n 1)"));
}

TEST(StudyTable, OneTrialAGroupHasNoSpreadAndNoTest) {
  StudyResults results = schedules();
  TableOptions options = against("parallel.schedule=1f1b");
  options.where = {"run.seed=2"};
  options.metrics = {"tokens_per_s"};
  EXPECT_EQ(text_of(results, options), R"(study schedules: 3 groups, 3 of 3 trials done

Schedule    n    Tokens/s ↑
1f1b        1    26,000
(baseline)
zb-v        1  > 27,200
                 Δ +1,200
gpipe       1    24,000
                 Δ -2,000

↓ lower is better, ↑ higher is better; the best mean is marked
n = 1: no standard deviation, no interval
Δ: difference to 1f1b; too few trials for a test
Tokens/s: zb-v is the best, but cannot be told from 1f1b, gpipe: too few trials for a test
loss and state_sha256: the same bits in all 3 groups of parallel.schedule for the one seed
)");
}

TEST(StudyTable, MarksTheBestInTheWayThatTheMetricGoes) {
  const auto best = [](const StudyResults& results, const char* metric) {
    TableOptions options;
    options.metrics = {metric};
    std::string names;
    for (const TableRow& row : make_table(results, options).rows)
      if (row.cells[0].best) names += row.group[0] + " ";
    return names;
  };
  StudyResults results = schedules();
  EXPECT_EQ(best(results, "tokens_per_s"), "zb-v ");
  EXPECT_EQ(best(results, "tokens_per_s:min"), "gpipe ");
  EXPECT_EQ(best(results, "peak_bytes"), "1f1b ");
  EXPECT_EQ(best(results, "peak_bytes:max"), "zb-v gpipe ");
  EXPECT_EQ(best(results, "loss"), "");       // all the same
  results.trials[4].figures["loss"] += 1e-9;  // printed as before
  EXPECT_EQ(best(results, "loss"), "");
  results.metric = "peak_bytes";
  results.minimise = false;
  EXPECT_EQ(best(results, "peak_bytes"), "zb-v gpipe ");
  for (TrialRecord& trial : results.trials) trial.figures["made_up"] = trial.number;
  EXPECT_EQ(best(results, "made_up"), "");
  EXPECT_EQ(best(results, "made_up:max"), "gpipe ");
}

TEST(StudyTable, AMeanOverOtherSeedsIsNotTheBest) {
  StudyResults results = schedules();
  results.trials[8].state = TrialState::failed;  // gpipe lacks the seed with the highest loss
  const StudyTable table = make_table(results, {});
  for (const TableRow& row : table.rows) EXPECT_FALSE(row.cells[0].best);
  EXPECT_TRUE(has_line(table.notes,
                       "Training loss: gpipe has the best mean, but not where it pairs up with "
                       "1f1b: none is marked"));
}

TEST(StudyTable, SaysWhereTheBestMayBeChance) {
  StudyResults results = schedules();
  results.trials[4].figures["tokens_per_s"] = 25000;
  EXPECT_TRUE(
      has(text_of(results), "Tokens/s: zb-v is the best, but cannot be told from 1f1b, gpipe\n"));
  EXPECT_FALSE(has(text_of(schedules()), "cannot be told"));
  // One of those that share the best figure is no winner over the others.
  for (std::size_t seed = 0; seed < 3; ++seed)
    results.trials[6 + seed].figures["tokens_per_s"] =
        results.trials[3 + seed].figures["tokens_per_s"] - 1e-6;
  EXPECT_TRUE(
      has(text_of(results), "Tokens/s: zb-v, gpipe are the best, but cannot be told from 1f1b\n"));
}

TEST(StudyTable, RefusesToMixProgramsAndProcessors) {
  for (const char* fact : {"version", "commit", "processor"}) {
    StudyResults results = schedules();
    for (const int trial : {3, 4, 5, 7})
      results.trials[static_cast<std::size_t>(trial)].facts[fact] = "other";
    const std::string first = schedules().trials[0].facts.at(fact);
    EXPECT_EQ(
        refusal([&] { make_table(results, {}); }),
        fmt::format("these trials differ in {0}: {1} (trials 1-3,7,9), other (trials 4-6,8) @ "
                    "studies/schedules @ --where {0}=... for some of them, or --mixed for all "
                    "in one table",
                    fact, first));
    TableOptions options;
    options.where = {fmt::format("{}=other", fact)};
    EXPECT_EQ(make_table(results, options).rows.size(), 2u);
    options = {};
    options.mixed = true;
    EXPECT_TRUE(has_line(make_table(results, options).notes,
                         fmt::format("mixed: these trials differ in {}: {} (trials 1-3,7,9), other "
                                     "(trials 4-6,8)",
                                     fact, first)));
    // What failed has no figures to mix.
    for (TrialRecord& trial : results.trials)
      if (trial.facts[fact] == "other") trial.state = TrialState::failed;
    EXPECT_EQ(make_table(results, {}).rows.size(), 3u);
  }
}

TEST(StudyTable, WarnsOfOtherInstructionsUnlessTheyAreTheStudy) {
  StudyResults results = schedules();
  results.trials[1].facts["isa"] = "avx2";
  const std::string warning =
      "warning: these trials differ in isa: avx512 (trials 1,3-9), avx2 (trial 2)";
  EXPECT_TRUE(has_line(make_table(results, {}).notes, warning));
  StudyResults arms = results;
  arms.trials[1].settings.emplace_back("numerics.isa", "avx2");  // of its arm
  EXPECT_FALSE(has_line(make_table(arms, {}).notes, warning));
  results.axes.insert(results.axes.begin(), "numerics.isa");
  EXPECT_FALSE(has_line(make_table(results, {}).notes, warning));
}

TEST(StudyTable, NamesTheLibraryThatDiffers) {
  StudyResults results = schedules();
  for (TrialRecord& trial : results.trials)
    trial.facts["libraries"] = R"({"mpi":"Open MPI 4.1.4","hdf5":"1.10.8"})";
  EXPECT_FALSE(has(text_of(results), "warning"));
  results.trials[4].facts["libraries"] = R"({"mpi":"Open MPI 5.0.3","hdf5":"1.10.8"})";
  EXPECT_TRUE(has_line(make_table(results, {}).notes,
                       "warning: these trials differ in mpi: Open MPI 4.1.4 (trials 1-4,6-9), Open "
                       "MPI 5.0.3 (trial 5)"));
  results.trials[4].facts["libraries"] = "no JSON";
  EXPECT_TRUE(has(text_of(results),
                  "differ in mpi: Open MPI 4.1.4 (trials 1-4,6-9), not recorded "
                  "(trial 5)"));
}

TEST(StudyTable, NamesTheLayoutWithOtherBits) {
  StudyResults results = schedules();
  results.trials[7].facts["state_sha256"] = std::string(64, 'z');
  const StudyTable table = make_table(results, {});
  EXPECT_TRUE(has_line(table.notes,
                       "loss: the same bits in all 3 groups of parallel.schedule for "
                       "each of 3 seeds"));
  EXPECT_TRUE(has_line(table.notes,
                       "state_sha256 differs at run.seed=2: parallel.schedule=gpipe (trial 8) has "
                       "zzzzzzzzzzzz; 2 of 3 trials have bbbbbbbbbbbb"));
  // One bit of a loss.
  results = schedules();
  results.trials[3].figures["loss"] = std::nextafter(results.trials[3].figures["loss"], 9);
  EXPECT_TRUE(
      has(text_of(results), "loss differs at run.seed=1: parallel.schedule=zb-v (trial 4)"));
  // A trial that failed has no bits.
  results.trials[3].state = TrialState::failed;
  EXPECT_TRUE(has(text_of(results), "loss and state_sha256: the same bits in 2 to 3 of 3 groups"));
}

TEST(StudyTable, BitsAreComparedWhereTheLayoutAloneDiffers) {
  StudyResults results;
  results.name = "grid";
  results.axes = {"optimizer.lr", "ranks", "run.seed"};
  for (const char* lr : {"0.001", "0.01"})
    for (const char* ranks : {"1", "4"})
      for (const char* seed : {"1", "2"})
        add(results, {{"optimizer.lr", lr}, {"ranks", ranks}, {"run.seed", seed}},
            {{"loss", 3 + std::stod(lr) + std::stod(seed)}});
  EXPECT_TRUE(has(text_of(results),
                  "loss: the same bits in all 2 groups of ranks for each of 4 values of "
                  "optimizer.lr and run.seed"));
  // Where something else than the layout differs nothing is claimed.
  for (TrialRecord& trial : results.trials)
    std::erase_if(trial.settings, [](const auto& s) { return s.first == "ranks"; });
  results.axes = {"optimizer.lr", "run.seed"};
  EXPECT_FALSE(has(text_of(results), "bits"));
}

/// Schedules at two depths, the rate doubling with the depth.
StudyResults grid() {
  StudyResults results;
  results.name = "grid";
  results.axes = {"parallel.schedule", "parallel.pp", "run.seed"};
  for (const char* schedule : {"1f1b", "zb-v"})
    for (const int pp : {2, 4})
      for (int seed = 1; seed <= 3; ++seed)
        add(results,
            {{"parallel.schedule", schedule},
             {"parallel.pp", std::to_string(pp)},
             {"run.seed", std::to_string(seed)}},
            {{"tokens_per_s",
              1000.0 * pp + 10 * seed + (schedule[0] == 'z' ? 100 * pp + seed : 0)}});
  return results;
}

TEST(StudyTable, EachRowIsComparedWithTheBaselineOfItsOwnOtherValues) {
  StudyTable table = make_table(grid(), against("parallel.schedule=1f1b"));
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_TRUE(table.rows[0].baseline && table.rows[1].baseline);
  EXPECT_NEAR(table.rows[2].cells[0].difference->difference, 202, 1e-9);
  EXPECT_NEAR(table.rows[3].cells[0].difference->difference, 402, 1e-9);
  TableOptions one = against("parallel.schedule=1f1b");
  one.baseline.push_back("parallel.pp=2");
  table = make_table(grid(), one);
  EXPECT_EQ(std::ranges::count_if(table.rows, &TableRow::baseline), 1);
  EXPECT_NEAR(table.rows[1].cells[0].difference->difference, 2000, 1e-9);
  EXPECT_NEAR(table.rows[3].cells[0].difference->difference, 2402, 1e-9);
  // A baseline that a row does not have.
  StudyResults results = grid();
  std::erase_if(results.trials,
                [](const TrialRecord& t) { return t.number >= 4 && t.number <= 6; });
  table = make_table(results, against("parallel.schedule=1f1b"));
  EXPECT_TRUE(has_line(table.notes,
                       "no trial of the baseline to compare with: "
                       "zb-v pp=4"));
}

TEST(StudyTable, AxesThatMakeNoGroupsPairUpToo) {
  TableOptions options = against("parallel.schedule=1f1b");
  options.by = {"parallel.schedule"};
  const StudyTable table = make_table(grid(), options);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1].trials.size(), 6u);
  EXPECT_EQ(table.rows[1].cells[0].difference->pairs, 6);
  EXPECT_NEAR(table.rows[1].cells[0].difference->difference, 302, 1e-9);
  EXPECT_TRUE(has_line(table.notes, "a group has trials of several Stages"));
}

TEST(StudyTable, AnAxisThatFollowsFromTheGroupDoesNotKeepTrialsApart) {
  StudyResults results = schedules();  // each schedule at a number of chunks of its own
  results.axes.insert(results.axes.begin() + 1, "parallel.chunks");
  for (TrialRecord& trial : results.trials)
    trial.settings.insert(trial.settings.begin() + 1,
                          {"parallel.chunks", std::to_string((trial.number - 1) / 3)});
  TableOptions options = against("parallel.schedule=1f1b");
  options.by = {"parallel.schedule"};
  const StudyTable table = make_table(results, options);
  EXPECT_EQ(table.rows[1].cells[1].difference->pairs, 3);
  EXPECT_FALSE(has(table_text(table, TableFormat::text, TableCells::full), "several"));
}

TEST(StudyTable, GroupsWithoutCommonSeedsAreComparedByWelchsTest) {
  StudyResults results = schedules();
  for (std::size_t t = 3; t < 6; ++t) results.trials[t].settings[1].second = std::to_string(t + 10);
  const StudyTable table = make_table(results, against("parallel.schedule=1f1b"));
  const SampleDifference& difference = *table.rows[1].cells[1].difference;
  EXPECT_EQ(difference.test, SignificanceTest::welch);
  EXPECT_NEAR(difference.difference, 3200.0 / 3, 1e-9);
  EXPECT_NEAR(difference.p.value(), 0.3399, 0.0001);  // t = 1.0837 at 3.968 degrees of freedom
  EXPECT_TRUE(has(table_text(table, TableFormat::text, TableCells::full),
                  "Welch's t test where less than two pairs"));
  TableOptions wilcoxon = against("parallel.schedule=1f1b");
  wilcoxon.test_of_pairs = SignificanceTest::wilcoxon;
  EXPECT_EQ(make_table(schedules(), wilcoxon).rows[1].cells[1].difference->p.value(), 0.25);
}

TEST(StudyTable, FiltersAndSorts) {
  TableOptions options;
  options.where = {"parallel.pp=2", "parallel.schedule=zb-v", "parallel.schedule=1f1b"};
  EXPECT_EQ(make_table(grid(), options).rows.size(), 2u);
  options = {};
  options.sort = "tokens_per_s";
  std::string order;
  for (const TableRow& row : make_table(grid(), options).rows)
    order += row.group[0] + row.group[1] + " ";
  EXPECT_EQ(order, "zb-v4 1f1b4 zb-v2 1f1b2 ");
  options.sort = "parallel.pp";
  order.clear();
  for (const TableRow& row : make_table(grid(), options).rows)
    order += row.group[0] + row.group[1] + " ";
  EXPECT_EQ(order, "1f1b2 zb-v2 1f1b4 zb-v4 ");
  // A number may be written in other ways.
  options.where = {"parallel.pp=4.0"};
  EXPECT_EQ(make_table(grid(), options).rows.size(), 2u);
}

TEST(StudyTable, RefusesWhatNoTrialHas) {
  const auto refused = [](auto change) {
    TableOptions options;
    change(options);
    return refusal([&] { make_table(schedules(), options); });
  };
  EXPECT_EQ(refused([](TableOptions& o) { o.metrics = {"los"}; }).substr(0, 56),
            "no trial has the column 'los' @ --metric @ loss (one of ");
  EXPECT_TRUE(has(refused([](TableOptions& o) { o.metrics = {"state_sha256"}; }),
                  "the column 'state_sha256' is no number in trial 1: 'aaaa"));
  EXPECT_TRUE(has(refused([](TableOptions& o) { o.by = {"parallel.shedule"}; }),
                  "@ --by @ parallel.schedule (one of"));
  EXPECT_TRUE(
      has(refused([](TableOptions& o) { o.pair = "loss"; }),
          "trials cannot pair up by 'loss': it is a result, not a setting @ --pair @ one of: "
          "parallel.schedule, run.seed"));
  EXPECT_EQ(refused([](TableOptions& o) { o.metrics = {"loss:least"}; }),
            "'least' is no direction of a metric @ --metric @ loss:min or loss:max");
  const std::string many = refused([](TableOptions& o) { o.metrics = {"per_s"}; });
  EXPECT_TRUE(has(many, "@ tokens_per_s (some of 13 columns; results.csv has all)")) << many;
  EXPECT_TRUE(has(refused([](TableOptions& o) { o.pair = "data.seed"; }), "@ --pair @"));
  EXPECT_TRUE(has(refused([](TableOptions& o) { o.where = {"parallel.schedule"}; }),
                  "'parallel.schedule' is not COLUMN=VALUE @ --where"));
  EXPECT_EQ(refused([](TableOptions& o) { o.where = {"parallel.schedule=zbv"}; }),
            "no trial is left with parallel.schedule=zbv @ --where @ zb-v (one of: 1f1b, zb-v, "
            "gpipe)");
  EXPECT_EQ(refused([](TableOptions& o) { o.baseline = {"parallel.schedule=1f1"}; }),
            "no group has parallel.schedule=1f1 @ --baseline @ 1f1b (one of: 1f1b, gpipe, zb-v)");
  EXPECT_TRUE(has(refused([](TableOptions& o) { o.baseline = {"run.seed=1"}; }),
                  "the baseline names run.seed, which makes no groups"));
  EXPECT_TRUE(
      has(refused([](TableOptions& o) { o.sort = "bubble"; }), "@ --sort @ one of: parallel"));
  for (const double confidence : {0.0, 1.0, -1.0, 95.0, std::nan("")})
    EXPECT_TRUE(has(refused([&](TableOptions& o) { o.confidence = confidence; }), "--confidence"));
  EXPECT_TRUE(has(refusal([] { table_format("latx"); }), "latex (one of: text"));
}

TEST(StudyTable, WritesMarkdownAndLatexWhateverNamesHave) {
  StudyResults results = schedules();
  for (TrialRecord& trial : results.trials)
    if (trial.settings[0].second == "zb-v") trial.settings[0].second = "a|b_c%&#${}~^\\<x>*";
  TableOptions options = against("parallel.schedule=1f1b");
  const std::string markdown = text_of(results, options, TableFormat::markdown);
  EXPECT_TRUE(has(markdown, "| a\\|b\\_c%\\&\\#\\${}\\~\\^\\\\\\<x\\>\\* | 3 | ")) << markdown;
  EXPECT_TRUE(has(markdown, "<br>Δ +1,067, p 0.014 \\* |")) << markdown;
  EXPECT_TRUE(has(markdown, "**27,233** ± 1,150<br>[24,376 to 30,091]<br>")) << markdown;
  const std::string latex = text_of(results, options, TableFormat::latex);
  EXPECT_TRUE(has(latex,
                  "\na\\textbar{}b\\_c\\%\\&\\#\\$\\{\\}\\textasciitilde{}\\textasciicircum{}"
                  "\\textbackslash{}$<$x$>${*} & 3 & "))
      << latex;
  EXPECT_TRUE(has(latex,
                  "\\begin{tabular}{lrrrr}\n\\toprule\nSchedule & n & Training loss "
                  "$\\downarrow$ & Tokens/s $\\uparrow$ & Peak memory (MiB) "
                  "$\\downarrow$ \\\\\n\\midrule\n"));
  EXPECT_TRUE(has(latex, "\\textbf{27,233} $\\pm$ 1,150 & 8.7008 $\\pm$ 0 \\\\*\n"));
  EXPECT_TRUE(has(latex, "{\\scriptsize $\\Delta$ $-$4,167, p 0.062}"));
  // Each line of the table has as many cells, and braces balance.
  int open = 0;
  for (std::size_t i = 0; i < latex.size(); ++i)
    if (i == 0 || latex[i - 1] != '\\') open += (latex[i] == '{') - (latex[i] == '}');
  EXPECT_EQ(open, 0);
}

TEST(StudyTable, NoValueEndsARowOrAComment) {
  StudyResults results = schedules();
  results.name = "a\nb";
  for (TrialRecord& trial : results.trials)
    trial.settings[0].second = trial.settings[0].second == "zb-v" ? "[0, 3]\x1b\r\n" : "*";
  const std::string latex = text_of(results, {}, TableFormat::latex);
  EXPECT_TRUE(has(latex, "\n{[}0, 3{]}    & 3 & ")) << latex;
  EXPECT_TRUE(has(latex, "\n{*} & 6 & ")) << latex;
  EXPECT_TRUE(has(latex, "\n% study a b: ")) << latex;
  EXPECT_TRUE(has(text_of(results, {}, TableFormat::markdown), "\n| \\[0, 3\\]    | 3 |"));
}

/// Nine trials of 2, 6 and 18 steps: trial 6 alone went to the end, 4 and 5 to the second rung, and
/// trial 9 failed there.
StudyResults halving() {
  StudyResults results;
  results.name = "search";
  results.axes = {"optimizer.lr"};
  results.metric = "validation_loss";
  results.rung_steps = {2, 6, 18};
  for (int t = 1; t <= 9; ++t) {
    TrialRecord& trial = add(results, {{"optimizer.lr", fmt::format("0.00{}", t)}},
                             {{"validation_loss", 6 - 0.1 * t}, {"steps", 2}});
    trial.state = TrialState::stopped;
    results.rungs[t] = {{2, t == 1 ? std::nan("") : 6 - 0.1 * t}};
  }
  for (const int t : {4, 5, 6, 9}) results.rungs[t].push_back({6, 5 - 0.1 * t});
  results.rungs[6].push_back({18, 3.25});
  results.trials[5].state = TrialState::done;
  results.trials[5].figures["validation_loss"] = 3.25;
  results.trials[8].state = TrialState::failed;
  return results;
}

TEST(StudyTable, StoppedTrialsAreRowsWhereAsked) {
  StudyResults results = halving();
  include_stopped(results);
  const StudyTable table = make_table(results, {});
  EXPECT_EQ(table.rows.size(), 9u);
  EXPECT_EQ(table.rows[2].cells[0].summary.mean, 6 - 0.1 * 3);
  EXPECT_TRUE(has(table_text(table, TableFormat::text, TableCells::full),
                  "trials 1-5,7-8 were stopped: their figures are of the steps that they did"));
  EXPECT_FALSE(table.search);
}

TEST(StudyTable, NotesAreLeftOutWhereAsked) {
  const StudyTable table = make_table(halving(), {.notes = false});
  EXPECT_TRUE(table_notes(table, TableCells::full).empty());
  EXPECT_FALSE(has(table_text(table, TableFormat::text, TableCells::full), "the best mean"));
}

TEST(StudyTable, SaysWhatSuccessiveHalvingDid) {
  const StudyTable table = make_table(halving(), {});
  EXPECT_EQ(table.rows.size(), 2u);  // stopped trials are no rows, the failed one is
  const std::string text = table_text(table, TableFormat::text, TableCells::full);
  EXPECT_TRUE(has(text, R"(
Step  Trials  Stopped  Best Validation loss  Of those stopped
   2       9        5                5.1000  5.2000 to 5.8000
   6       4        2                4.1000  4.5000 to 4.6000
  18       1        0                3.2500                 -
)")) << text;
  EXPECT_TRUE(has(text,
                  "successive halving of 9 trials by Validation loss: the best is trial 6 "
                  "(lr=0.006), 3.2500 after 18 steps\n"
                  "cost: 46 of the 162 steps of the whole grid (28%)\n"))
      << text;  // 5 x 2 + 3 x 6 + 18
  EXPECT_FALSE(has(text, "stopped: trial")) << text;
  EXPECT_EQ(to_json(table)["search"]["rungs"][0]["stopped"], 5);
  EXPECT_EQ(to_json(table)["search"]["best"], 6);
  EXPECT_TRUE(has(table_text(table, TableFormat::latex, TableCells::mean_sd),
                  "\n2 & 9 & 5 & 5.1000 & 5.2000 to 5.8000 \\\\\n"));
  EXPECT_TRUE(has(table_text(table, TableFormat::markdown, TableCells::mean_sd),
                  "| Step | Trials | Stopped | Best Validation loss | Of those stopped |\n"
                  "|---:|---:|---:|---:|---:|\n| 2 | 9 | 5 | "));
  StudyResults results = halving();
  results.minimise = false;
  EXPECT_TRUE(has(text_of(results), "5.9000") == false &&
              has(text_of(results), "5.8000  5.8000 to"));
  results.rungs.clear();
  EXPECT_TRUE(has(text_of(results), "none has reached the last step, 18"));
  EXPECT_FALSE(to_json(make_table(schedules(), {})).contains("search"));
}

TEST(StudyTable, CsvHasAllDigits) {
  const StudyTable table = make_table(schedules(), against("parallel.schedule=1f1b"));
  const auto rows = parse_csv(table_text(table, TableFormat::csv, TableCells::full));
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 4u);
  const auto at = [&](std::size_t row, const std::string& column) {
    const auto found = std::ranges::find(rows->front(), column);
    EXPECT_NE(found, rows->front().end()) << column;
    return (*rows)[row][static_cast<std::size_t>(found - rows->front().begin())];
  };
  EXPECT_EQ(at(2, "parallel.schedule"), "zb-v");
  EXPECT_EQ(std::stod(at(2, "tokens_per_s_mean")), table.rows[1].cells[1].summary.mean);
  EXPECT_EQ(std::stod(at(2, "tokens_per_s_p")), table.rows[1].cells[1].p.value());
  EXPECT_EQ(std::stod(at(2, "tokens_per_s_p_single")),
            table.rows[1].cells[1].difference->p.value());
  EXPECT_EQ(at(1, "tokens_per_s_p"), "");
  for (const auto& row : *rows) EXPECT_EQ(row.size(), rows->front().size());
}

TEST(StudyTable, SettlesDigitsByTheUncertainty) {
  const auto text = [](double value, std::vector<double> values, std::vector<double> sizes) {
    return figure_text(value, digits_for(values, sizes));
  };
  EXPECT_EQ(text(3.37712, {3.37712}, {0.0331}), "3.377");
  EXPECT_EQ(text(3.37712, {3.37712}, {0.0331, 0.00004}), "3.37712");
  EXPECT_EQ(text(25512.34, {25512.34}, {2534}), "25,512");
  EXPECT_EQ(text(-1234567.9, {1234567.9}, {12}), "-1,234,568");
  EXPECT_EQ(text(3.37712345, {3.37712345}, {0}), "3.3771");
  EXPECT_EQ(text(6767432, {6767432}, {0}), "6,767,432");
  EXPECT_EQ(text(1e-17, {3.37712345}, {1e-17}), "1e-17");
  EXPECT_EQ(text(3.37712345, {3.37712345}, {1e-17}), "3.377123450");
  EXPECT_EQ(text(2.5e-12, {2.5e-12}, {1e-13}), "2.500e-12");
  EXPECT_EQ(text(-0.0, {0.5}, {0.1}), "0.00");
  EXPECT_EQ(text(1e300, {1e300}, {1e290}), "1.000e+300");
  EXPECT_EQ(text(std::nan(""), {1}, {}), "NaN");
}

/// What a run says of its evaluation, and a figure of it.
struct Evaluated {
  const char *data, *measure;
  double tokens = 100;
};

StudyResults evaluated(const Evaluated& one, const Evaluated& other) {
  StudyResults results;
  results.name = "two";
  results.loose = true;
  // The first is better per target, the second per byte.
  const double losses[] = {2, 3}, bits[] = {7, 5};
  for (std::size_t i = 0; i < 2; ++i) {
    const Evaluated& run = i == 0 ? one : other;
    TrialRecord& trial = add(results, {{"run", i == 0 ? "a" : "b"}},
                             {{"validation_loss", losses[i]},
                              {"validation_accuracy", 0.1 + 0.1 * static_cast<double>(i)},
                              {"validation_bits_per_byte", bits[i]},
                              {"validation_tokens", run.tokens},
                              {"time_to_validation_loss_3_s", losses[i]},
                              {"median_step_ms", losses[i]}});
    if (run.data != nullptr) trial.facts["validation_data"] = run.data;
    if (run.measure != nullptr) trial.facts["validation_measure"] = run.measure;
    if (run.data == nullptr) trial.facts["config"] = "none";
  }
  return results;
}

/// Every pair of data, task, tokenizer, and part that was evaluated: a winner only among figures of
/// one measure, of bits per byte whatever the tokenizer, and a sentence where there is none.
TEST(StudyTable, MarksAWinnerOnlyAmongFiguresOfOneMeasure) {
  const char* const kData[] = {"d1", "d2", nullptr};
  const char* const kUnits[] = {"causal-lm, tokens of a", "causal-lm, tokens of b",
                                "classification"};
  int right = 0;
  for (const char* data : kData)
    for (const char* unit : kUnits)
      for (const char* other_data : kData)
        for (const char* other_unit : kUnits)
          for (const double tokens : {100.0, 50.0}) {
            const StudyResults results =
                evaluated({data, unit, 100}, {other_data, other_unit, tokens});
            TableOptions options;
            options.by = {"run"};
            options.metrics = {"validation_loss", "validation_bits_per_byte",
                               "time_to_validation_loss_3_s", "median_step_ms",
                               "validation_accuracy"};
            options.baseline = {"run=a"};
            const StudyTable table = make_table(results, options);
            const bool same_data = data != nullptr && data == other_data;
            const bool same = same_data && unit == other_unit && tokens == 100;
            const bool alike[] = {same, same_data, same, true, same};
            const int best[] = {0, 1, 0, 0, 1};
            for (std::size_t m = 0; m < 5; ++m) {
              for (int row = 0; row < 2; ++row)
                EXPECT_EQ(table.rows[static_cast<std::size_t>(row)].cells[m].best,
                          alike[m] && row == best[m])
                    << m << (data ? data : "-") << (other_data ? other_data : "-") << unit
                    << other_unit << tokens;
              EXPECT_EQ(table.rows[1].cells[m].difference.has_value(), alike[m]);
            }
            EXPECT_EQ(has(text_of(results, options), "not compared, no best is marked"), !same);
            right += same ? 1 : 0;
          }
  EXPECT_EQ(right, 6);
}

/// Without an evaluation nothing records the unit of a token: then the configs decide.
TEST(StudyTable, ComparesSpeedAndTrainingLossOnlyWhereTheConfigsAreAlike) {
  const auto why = [](const char* column, const Settings& one, const Settings& other) {
    TrialRecord a, b;
    a.settings = one, b.settings = other;
    a.figures = b.figures = {{"loss", 2}, {"tokens_per_s", 900}};
    return why_unlike({&a, &b}, column);
  };
  const Settings bytes{{"data.tokenizer", "bytes"}}, words{{"data.tokenizer", "bpe"}};
  EXPECT_EQ(why("tokens_per_s", bytes, words), "the tokenizers differ");
  EXPECT_EQ(why("tokens_per_s", bytes, bytes), "");
  EXPECT_EQ(why("loss", {{"model.label_smoothing", "0"}}, {{"model.label_smoothing", "0.3"}}),
            "the configs differ in model.label_smoothing");
  EXPECT_EQ(why("loss", {{"optimizer.lr", "0.1"}}, {{"optimizer.lr", "0.2"}}), "");
  TrialRecord known, imported;
  known.figures = imported.figures = {{"tokens_per_s", 900}};
  imported.facts[kNoConfig] = "none";
  EXPECT_EQ(why_unlike({&known, &imported}, "tokens_per_s"),
            "it is not recorded what their tokens are");
}

TEST(StudyTable, ComparesBitsPerByteWhereTokenizersDifferAndTheTextIsTheSame) {
  const StudyResults results =
      evaluated({"d", "causal-lm, tokens of a"}, {"d", "causal-lm, tokens of b"});
  const std::vector<MetricColumn> metrics = default_metrics(results);
  EXPECT_EQ(metrics[0].name, "validation_bits_per_byte");
  EXPECT_EQ(metrics[1].name, "validation_loss");
  EXPECT_EQ(metrics[2].name, "validation_accuracy");
  EXPECT_EQ(default_metrics(evaluated({"d", "m"}, {"d", "m"}))[0].name, "validation_loss");
}

/// A study of before has no digests: its settings say whether its trials are of the same data.
TEST(StudyTable, TakesFiguresWithoutADigestForAlikeIfNoSettingOfDataDiffers) {
  for (const char* key : {"parallel.pp", "optimizer.lr", "data.validation", "data.tokenizer",
                          "data.text", "data.files", "eval.batches", "model.task"}) {
    StudyResults results;
    results.name = "s";
    results.axes = {key};
    add(results, {{key, "1"}}, {{"validation_loss", 2}, {"loss", 2}});
    add(results, {{key, "2"}}, {{"validation_loss", 3}, {"loss", 3}});
    const StudyTable table = make_table(results, {});
    const std::string name = key;
    const bool alike = name.starts_with("parallel") || name.starts_with("optimizer");
    for (std::size_t m = 0; m < 2; ++m) EXPECT_EQ(table.rows[0].cells[m].best, alike) << key;
  }
}

}  // namespace
}  // namespace concertina
