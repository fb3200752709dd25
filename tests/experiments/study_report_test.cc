#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "experiments/results/study_report.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

/// The first thing that is wrong with the tags of an XML text; empty if none is.
std::string misnesting(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = xml.find('<', at)) != xml.npos;) {
    const std::size_t end = xml.find('>', at);
    if (end == xml.npos) return "a tag without end";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.find('<') != tag.npos) return "'<' in a tag: " + tag;
    if (tag.starts_with("!") || tag.ends_with("/")) continue;
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" \n") - (tag[0] == '/'));
    if (tag[0] != '/') {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return "</" + name + "> after " + open.back();
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is open";
}

TrialRecord report_trial(int number, const char* schedule, int seed) {
  TrialRecord trial;
  trial.number = number;
  trial.settings = {{"parallel.schedule", schedule}, {"run.seed", std::to_string(seed)}};
  trial.state = TrialState::done;
  trial.figures = {{"loss", 3.0 + seed},
                   {"tokens_per_s", 1000.0 * number},
                   {"trial_s", 2},
                   {"recorded.median_step_ms", 10},
                   {"recorded.bubble", 0.25},
                   {"recorded.bubble_causes.schedule", 0.2},
                   {"recorded.bubble_causes.transfer", 0.05}};
  trial.facts = {{"commit", "abc<&"}, {"processor", "Zen"}};
  return trial;
}

MetricsPoint at_step(double step, double loss) {
  return {.step = step, .loss = loss, .tokens_per_s = 100 * step, .step_ms = 10};
}

StudyPage example_page() {
  StudyPage page;
  page.results.name = "a<b>&\"c";
  page.results.axes = {"parallel.schedule", "run.seed"};
  const char* names[] = {"1f1b", "zb-v<x>"};
  for (int t = 0; t < 4; ++t)
    page.results.trials.push_back(report_trial(t + 1, names[t / 2], t % 2 + 1));
  page.results.trials[3].state = TrialState::failed;
  page.results.trials[3].error = "error: <broken> & gone\n  at: rank 3";
  page.table = make_table(page.results, {});
  for (int number = 1; number <= 3; ++number) {
    for (int step = 1; step <= 3; ++step)
      page.runs[number].course.metrics.push_back(at_step(step, 5.0 / step + (number == 2 ? 1 : 0)));
    page.runs[number].config =
        number == 2 ? "[lr]\nwarmup = 5\n[run]\nseed = 2" : "[lr]\nwarmup = 7";
    page.runs[number].link = std::to_string(number) + "/run";
  }
  page.runs[1].report = "1/run/report.html";
  page.spec = "name = \"<&>\"";
  return page;
}

std::string part(const std::string& page, const std::string& head) {
  const std::size_t at = page.find("<h2>" + head + "</h2>");
  return at == page.npos ? "" : page.substr(at, page.find("<h2>", at + 1) - at);
}

TEST(StudyReport, IsAWellFormedPageWhateverNamesHave) {
  const std::string text = study_page(example_page());
  EXPECT_EQ(misnesting(text), "");
  EXPECT_EQ(text.find("<broken>"), text.npos);
  EXPECT_NE(text.find("<title>a&lt;b&gt;&amp;&quot;c"), text.npos);
  EXPECT_NE(misnesting("<a><b></a>"), "");
  StudyPage empty;
  EXPECT_EQ(misnesting(study_page(empty)), "");
  EXPECT_EQ(text, study_page(example_page()));
}

TEST(StudyReport, HasTableTrialsErrorsAndLinks) {
  const std::string text = study_page(example_page());
  EXPECT_NE(part(text, "Table").find("<td class=\"group\">zb-v&lt;x&gt;</td><td>1</td>"), text.npos)
      << part(text, "Table");
  const std::string trials = part(text, "Trials");
  EXPECT_NE(trials.find("<a href=\"1/run/report.html\">1 (report)</a>"), trials.npos);
  EXPECT_NE(trials.find("<a href=\"2/run\">2</a>"), trials.npos);
  EXPECT_NE(trials.find("<td>4</td>"), trials.npos);
  EXPECT_NE(trials.find("state-failed"), trials.npos);
  const std::string wrong = part(text, "What went wrong");
  EXPECT_NE(wrong.find("error: &lt;broken&gt; &amp; gone\n  at: rank 3"), wrong.npos);
  EXPECT_NE(part(text, "Where it is from").find("abc&lt;&amp; (trials 1-4)"), text.npos);
}

/// Rates of three seeds: zb-v is `faster` than 1f1b, give or take what differs between seeds.
StudyPage rates_page(double faster) {
  StudyPage page = example_page();
  page.results.trials.clear();
  for (int t = 0; t < 6; ++t) {
    page.results.trials.push_back(report_trial(t + 1, t < 3 ? "1f1b" : "zb-v", t % 3 + 1));
    page.results.trials[t].figures["tokens_per_s"] =
        1000.0 + 7 * (t % 3) + (t < 3 ? 0 : faster + t);
  }
  TableOptions options;
  options.metrics = {"tokens_per_s"};
  page.table = make_table(page.results, options);
  return page;
}

std::string tiles_of(const StudyPage& page) {
  const std::string text = study_page(page);
  return text.substr(text.find("<div class=\"tiles\">"), text.find("<h2>") - text.find("<h1>"));
}

TEST(StudyReport, TheHeadlineIsNoBestThatMayBeChance) {
  EXPECT_NE(tiles_of(rates_page(500)).find("<b>zb-v</b><span>the best mean Tokens/s: 1,511"),
            std::string::npos);
  StudyPage page = rates_page(0);
  page.results.trials[5].figures["tokens_per_s"] = 1000;
  page.table = make_table(page.results, {});
  page.table.metrics = {page.table.metrics.back()};
  for (TableRow& row : page.table.rows) row.cells = {row.cells.back()};
  EXPECT_NE(tiles_of(page).find("<b>no clear best</b><span>Tokens/s: "), std::string::npos);
  EXPECT_NE(tiles_of(page).find("cannot be told from"), std::string::npos);
}

TEST(StudyReport, HasTheValuesOfTheTable) {
  const StudyPage page = rates_page(500);
  const TableCell& cell = page.table.rows[1].cells[0];
  EXPECT_NEAR(cell.p.value(), 0.0000013, 1e-6);
  const std::string text = part(study_page(page), "Table");
  EXPECT_EQ(text,
            "<h2>Table</h2>\n" + table_text(page.table, TableFormat::html, TableCells::difference));
  EXPECT_NE(text.find("<small>Δ +504.0, p &lt; 0.001 *</small>"), text.npos) << text;
}

TEST(StudyReport, ShowsWhatASearchStopped) {
  StudyPage page = example_page();
  page.results.metric = "loss";
  page.results.rung_steps = {2, 6};
  for (int t = 1; t <= 3; ++t) page.results.rungs[t] = {{2, 3.0 + t}};
  page.results.rungs[2].push_back({6, 2.5});
  for (const int t : {0, 2}) page.results.trials[t].state = TrialState::stopped;
  page.table = make_table(page.results, {});
  const std::string text = study_page(page);
  EXPECT_EQ(misnesting(text), "");
  EXPECT_NE(text.find("<b>trial 2</b><span>the best of 4, Training loss: 2.5000"), text.npos);
  EXPECT_NE(text.find("<b>42%</b><span>of the whole grid: 10 of 24 steps"), text.npos);
  EXPECT_NE(text.find("<tr><td>2</td><td>3</td><td>2</td><td>4.0000</td><td>4.0000 to 6.0000"),
            text.npos);
}

TEST(StudyReport, NamesKeysOfConfigsThatDifferBesideTheAxes) {
  const std::string settings = part(study_page(example_page()), "Settings");
  EXPECT_NE(settings.find("<td>lr.warmup</td><td>5 (trial 2); 7 (trials 1,3)</td>"), settings.npos)
      << settings;
  EXPECT_EQ(settings.find("<td>run.seed</td><td>2 ("), settings.npos);
  StudyPage page = example_page();
  page.runs[2].config = page.runs[1].config;
  EXPECT_NE(part(study_page(page), "Settings").find("No other key differs"), settings.npos);
  page.runs[2].config = "no [toml";
  EXPECT_NE(part(study_page(page), "Settings").find("No other key differs"), settings.npos);
}

TEST(StudyReport, DrawsAStepByCauseToScale) {
  const std::string time = part(study_page(example_page()), "Where the time went");
  const auto width_of = [&](const std::string& title) {
    const std::size_t end = time.find("<title>" + title);
    return end == time.npos ? 0 : std::stod(time.substr(time.rfind(" width=\"", end) + 8));
  };
  const double busy = width_of("1f1b, computing and updating: 7.5 ms");
  EXPECT_GT(busy, 100) << time;
  EXPECT_NEAR(width_of("1f1b, schedule: 2 ms"), busy * 2 / 7.5, 0.02);
  EXPECT_NEAR(width_of("1f1b, transfer: 0.5 ms"), busy * 0.5 / 7.5, 0.02);
  EXPECT_NE(time.find("10 ms, bubble 25.0%"), time.npos);
  StudyPage page = example_page();
  for (TrialRecord& trial : page.results.trials) trial.figures = {{"loss", 1}};
  EXPECT_EQ(part(study_page(page), "Where the time went"), "");
}

TEST(StudyReport, GroupsWithTheSameCurveAreOneLine) {
  StudyPage page = example_page();
  const auto loss_figure = [&] {
    const std::string section = part(study_page(page), "Curves");
    return section.substr(0, section.find("</figure>"));
  };
  std::string curves = loss_figure();
  EXPECT_EQ(curves.find("the same values"), curves.npos) << curves;
  page.runs[2].course = page.runs[1].course;
  curves = loss_figure();
  EXPECT_NE(curves.find("1f1b, zb-v&lt;x&gt; (the same values)"), curves.npos) << curves;
  page.runs.clear();
  EXPECT_EQ(part(study_page(page), "Curves"), "");
}

TEST(StudyCourse, AveragesStepsThatAllTrialsHave) {
  const StepCurve first{{1, 2, 3}, {4, 5, 6}}, second{{2, 3, 4}, {7, std::nan(""), 9}};
  const MeanCurve mean = mean_of({first, second}, 0.95);
  EXPECT_EQ(mean.step, (std::vector<double>{2, 3}));
  EXPECT_EQ(mean.mean[0], 6);
  EXPECT_GT(mean.high[0], 6);
  EXPECT_TRUE(std::isnan(mean.mean[1]));
  const MeanCurve one = mean_of({first}, 0.95);
  EXPECT_EQ(one.low, one.mean);
  EXPECT_TRUE(mean_of({}, 0.95).step.empty());
}

TEST(StudyCourse, TakesCurvesFromLogs) {
  RunLog course;
  course.metrics = {at_step(1, 5), at_step(2, 4), at_step(2, 3)};
  course.validations = {{.step = 1, .loss = 4, .tokens = 10}, {.step = 2, .loss = 3, .tokens = 99}};
  EXPECT_EQ(curve_of(course, "loss").value, (std::vector<double>{5, 3}));
  EXPECT_EQ(curve_of(course, "validation_loss").value, (std::vector<double>{4}));
  EXPECT_THROW(curve_of(course, "los"), std::exception);
  EXPECT_EQ(group_label({"parallel.schedule", "parallel.pp"}, {"zb-v", "2"}), "zb-v pp=2");
  EXPECT_EQ(group_label({}, {}), "all trials");
}

TEST(StudyReport, LinksAreRelativeToThePage) {
  const TemporaryDirectory scratch;
  const std::string study = scratch.path() + "/study";
  std::filesystem::create_directories(study + "/1/run");
  std::ofstream(study + "/1/run/report.html") << "x";
  std::ofstream(study + "/1/run/metrics.jsonl") << "{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"lo";
  StudyResults results;
  results.directory = study;
  results.trials = {report_trial(1, "1f1b", 1)};
  results.trials[0].directory = study + "/1/run";
  EXPECT_EQ(load_study_page(results, {}, study + "/report.html").runs.at(1).report,
            "1/run/report.html");
  const StudyPage page = load_study_page(results, {}, scratch.path() + "/pages/a.html");
  EXPECT_EQ(page.runs.at(1).report, "../study/1/run/report.html");
  EXPECT_EQ(page.runs.at(1).course.metrics.size(), 1u);
}

}  // namespace
}  // namespace concertina
