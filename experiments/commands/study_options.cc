#include "experiments/commands/study_options.h"

namespace concertina {

void add_group_options(CLI::App& app, GroupOptions& options) {
  app.add_option("study", options.directory, "the study's folder")->type_name("STUDY")->required();
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* help) {
    return app.add_option(name, values, help)->delimiter(',')->allow_extra_args(false);
  };
  list("--metric", options.table.metrics,
       "columns to average, each with :min or :max where it does not know which is better; the "
       "study's metric, loss, tokens_per_s, median_step_ms, bubble and peak_bytes if not given")
      ->type_name("COLUMN,...");
  list("--by", options.table.by, "columns that make groups; all axes but run.seed if not given")
      ->type_name("COLUMN,...");
  list("--baseline", options.table.baseline,
       "the groups that others are compared with, each with the one that has its other values; "
       "none: no comparison; the first group, where groups have several trials, if not given")
      ->type_name("COLUMN=VALUE,...");
  app.add_option("--pair", options.table.pair, "trials with the same value there are compared")
      ->type_name("COLUMN")
      ->capture_default_str();
  app.add_option("--test", options.test, "of pairs: t (paired t test) or wilcoxon (signed rank)")
      ->check(CLI::IsMember({"t", "wilcoxon"}))
      ->capture_default_str();
  app.add_option("--correction", options.correction,
                 "of the p values of one metric for their number: holm or none")
      ->capture_default_str();
  app.add_option("--confidence", options.table.confidence,
                 "of intervals; p below 1 minus it is marked")
      ->check(number(0, 1))
      ->capture_default_str();
  app.add_option("--where", options.table.where,
                 "only trials with this value; may be repeated: any value of one column, all "
                 "columns")
      ->type_name("COLUMN=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--sort", options.table.sort,
                 "by a metric, best first, or by a column of the groups")
      ->type_name("COLUMN");
  app.add_flag("--mixed", options.table.mixed,
               "average trials of different programs or processors all the same");
}

void add_launcher_option(CLI::App& app, std::string& launcher) {
  app.add_option("--launcher", launcher,
                 "mpirun (default) or srun, where the study's [launch] has no command")
      ->type_name("NAME");
}

TableOptions table_options(const GroupOptions& options) {
  TableOptions table = options.table;
  if (options.test == "wilcoxon") table.test_of_pairs = SignificanceTest::wilcoxon;
  table.correction = p_correction(options.correction);
  return table;
}

}  // namespace concertina
