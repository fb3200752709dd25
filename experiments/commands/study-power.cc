// `concertina study power`.
#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/commands/study_options.h"
#include "experiments/results/figure_names.h"
#include "experiments/study/study_folder.h"

namespace concertina {
namespace {

struct StudyPowerCommand : CommandOptions {
  std::string study, pilot, equivalent;
  std::optional<double> alpha, deviation;
  std::vector<std::string> baseline;
  double difference = 0, power = 0.8;
  std::optional<int> seeds;
};

/// A deviation of paired differences, and of what it is.
struct PowerCase {
  std::string name;
  double deviation = 0;
};

EquivalenceClaim claim_for(const StudyPowerCommand& options, const StudySpec& spec) {
  options.needs("--alpha", "--equivalent", !options.equivalent.empty());
  if (options.equivalent.empty() && !spec.claim)
    throw_input("the study claims no equivalence", options.study,
                "[equivalence] in the study's file; or --equivalent METRIC=MARGIN");
  EquivalenceClaim claim =
      options.equivalent.empty() ? *spec.claim : claim_of(options.equivalent, "--equivalent");
  claim.alpha = options.alpha.value_or(claim.alpha);
  if (!options.baseline.empty()) claim.baseline = options.baseline;
  return claim;
}

/// The deviation that was given, or that of each group of the pilot.
std::vector<PowerCase> cases_of(const StudyPowerCommand& options, const EquivalenceClaim& claim) {
  if (options.deviation) return {{"--deviation", *options.deviation}};
  if (options.pilot.empty())
    throw_input("nothing says how far the differences of pairs are spread", "command line",
                "--pilot studies/NAME; or --deviation D, in the metric's own unit");
  TableOptions table{.metrics = {claim.metric}, .mixed = true, .claim = claim};
  table.baseline = claim.baseline;
  std::vector<PowerCase> cases;
  const StudyTable pilot = make_table(read_study(options.pilot), table);
  for (const TableRow& row : pilot.rows)
    if (const auto& test = row.cells.front().equivalence; test && test->deviation)
      cases.push_back(
          {fmt::format("{}, {}", group_label(pilot.by, row.group), counted(test->pairs, "pair")),
           *test->deviation});
  if (cases.empty())
    throw_input("no group of the pilot has two pairs with its baseline", options.pilot,
                "two seeds at least; or --deviation D");
  return cases;
}

int run_study_power(const StudyPowerCommand& options) {
  options.excludes("--deviation", "--pilot", !options.pilot.empty());
  std::string toml;
  const StudySpec spec = std::filesystem::is_directory(options.study)
                             ? read_study_folder_spec(options.study)
                             : read_study_file(options.study, toml);
  const EquivalenceClaim claim = claim_for(options, spec);
  const int seeds = options.seeds.value_or(static_cast<int>(spec.seeds.size()));
  const FigureName name = name_of_figure(claim.metric);
  const auto figure = [&](double value) {
    return fmt::format("{:.4g}{}", name.factor * value, name.unit.empty() ? "" : " " + name.unit);
  };
  std::string text = fmt::format(
      "equivalence of {} within ±{}, alpha = {:.4g}, at a true difference of {}\n",
      name.short_title(), figure(claim.margin), claim.alpha, figure(options.difference));
  nlohmann::ordered_json json = {{"metric", claim.metric},
                                 {"margin", claim.margin},
                                 {"alpha", claim.alpha},
                                 {"difference", options.difference},
                                 {"seeds", seeds},
                                 {"wanted_power", options.power},
                                 {"cases", nlohmann::ordered_json::array()}};
  for (const PowerCase& one : cases_of(options, claim)) {
    const EquivalenceDesign design{one.deviation, claim.margin, claim.alpha, options.difference};
    const double power = seeds < 2 ? 0 : equivalence_power(seeds, design);
    const std::optional<int> needed = pairs_for_power(options.power, design);
    text +=
        fmt::format("deviation {} ({}): power {:.3f} with {}; {}\n", figure(one.deviation),
                    one.name, power, counted(seeds, "seed"),
                    needed ? fmt::format("{} for {:.4g}", counted(*needed, "seed"), options.power)
                           : fmt::format("no number of seeds has {:.4g}", options.power));
    json["cases"].push_back({{"name", one.name},
                             {"deviation", one.deviation},
                             {"power", power},
                             {"seeds_for_power", nullptr}});
    if (needed) json["cases"].back()["seeds_for_power"] = *needed;
  }
  print_once(options.json ? json_line(json) : text);
  return 0;
}

void add_study_power_options(CLI::App& app, StudyPowerCommand& options) {
  app.add_option("study", options.study, "the study's file, or the folder of one that began")
      ->type_name("STUDY.toml|FOLDER")
      ->required();
  app.add_option("--pilot", options.pilot,
                 "a study whose pairs say how far their differences are spread")
      ->type_name("STUDY");
  app.add_option("--deviation", options.deviation,
                 "the standard deviation of the differences of pairs, in the metric's own unit")
      ->check(number(0, kMostMargin));
  app.add_option("--difference", options.difference, "the true one, in the metric's own unit")
      ->check(number(-kMostMargin, kMostMargin))
      ->capture_default_str();
  app.add_option("--power", options.power, "that the number of seeds is for")
      ->check(number(0.01, 0.9999))
      ->capture_default_str();
  app.add_option("--seeds", options.seeds, "in place of the number of the study's")
      ->check(whole_number(2, 1 << 20));
  app.add_option("--equivalent", options.equivalent, "in place of the study's [equivalence]")
      ->type_name("METRIC=MARGIN");
  app.add_option("--alpha", options.alpha, "of --equivalent; 0.05 if not given")
      ->check(number(kLeastAlpha, kMostAlpha));
  app.add_option("--baseline", options.baseline, "of the pilot; that of [equivalence] if not given")
      ->type_name("COLUMN=VALUE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_json_option(app, options);
}

}  // namespace

Command command_study_power() {
  return make_command<StudyPowerCommand>(
      "the chance that a study's seeds show an equivalence, before it is launched",
      add_study_power_options, run_study_power);
}

}  // namespace concertina
