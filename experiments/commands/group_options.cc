#include "experiments/commands/python_command.h"

#include "experiments/study/results.h"

namespace concertina {

void add_study_folders(CLI::App& app) {
  add_text_option(app, "study", "STUDY|RUN...",
                  "folder of a study, such as studies/NAME, or run directories (not only "
                  "Concertina's)")
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args()
      ->required();
}

void add_equivalent_options(CLI::App& app) {
  add_text_option(app, "--equivalent", "METRIC=MARGIN",
                  "test whether groups are within this margin of the baseline, in the metric's own "
                  "unit (default: [equivalence] in the study's file)");
  add_text_option(app, "--alpha", "FLOAT", "significance level for --equivalent (default: 0.05)")
      ->check(number(kLeastAlpha, kMostAlpha));
}

void add_trial_options(CLI::App& app) {
  add_passed_flag(
      app, "--stopped",
      "include trials that a search stopped, with the metrics of their completed steps");
  add_passed_flag(app, "--mixed",
                  "average trials from different programs or processors, with a note");
}

void add_group_options(CLI::App& app, CommandOptions& options) {
  add_study_folders(app);
  add_list_option(app, "--metric", "COLUMN,...",
                  "columns to average; append :min or :max if lower or higher is better (default: "
                  "the study's metric, loss, tokens_per_s, median_step_ms, bubble and peak_bytes)");
  add_list_option(app, "--by", "COLUMN,...",
                  "columns that define groups (default: all axes except run.seed)");
  add_list_option(app, "--baseline", "COLUMN=VALUE,...",
                  "baseline groups; each other group is compared with the baseline group that has "
                  "the same values in all other columns; none: no comparison (default: the first "
                  "group, if groups have several trials)");
  add_text_option(app, "--pair", "COLUMN", "pair trials that have the same value in this column")
      ->default_str("run.seed");
  add_text_option(app, "--test", "TEST",
                  "paired test: t (paired t test) or wilcoxon (signed-rank test)")
      ->check(CLI::IsMember({"t", "wilcoxon"}))
      ->default_str("t");
  add_text_option(app, "--correction", "NAME",
                  "multiple-comparison correction for a metric's p-values: holm or none")
      ->check(CLI::IsMember({"holm", "none"}))
      ->default_str("holm");
  add_text_option(app, "--confidence", "FLOAT",
                  "confidence level of intervals; p-values below 1 - confidence are marked")
      ->check(number(0, 1))
      ->default_str("0.95");
  add_equivalent_options(app);
  add_repeated_option(app, "--to", "METRIC=NUMBER|baseline",
                      "add a column with the training time in seconds until a held-out metric "
                      "reaches a number or the baseline's last value (baseline-0.005: slightly "
                      "below it); may be repeated");
  add_repeated_option(app, "--where", "COLUMN=VALUE",
                      "include only trials with this value; if repeated, a trial must have one of "
                      "the values given for each column");
  add_text_option(
      app, "--sort", "COLUMN",
      "sort by a metric (best first) or by a column in --by (default: order of the trials)");
  add_trial_options(app);
  add_passed_flag(app, "--no-notes", "omit the notes below the table");
  add_json_option(app, options);
}

}  // namespace concertina
