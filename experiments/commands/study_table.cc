// `concertina study table`.
#include "experiments/study/study_table.h"

#include <fmt/format.h>

#include "experiments/commands/command_study.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"

namespace concertina {
namespace {

struct StudyTableCommand : TableOptions {
  std::string directory, format = "text", output, test = "t";
  bool json = false;
};

int run_study_table(StudyTableCommand options) {
  const TableFormat format = table_format(options.format);
  if (options.test == "wilcoxon") options.test_of_pairs = SignificanceTest::wilcoxon;
  const StudyTable table = make_table(read_study(options.directory), options);
  const std::string text = table_text(table, format);
  if (!options.output.empty()) atomic_replace(options.output, text);
  if (options.json)
    print_once(json_line(to_json(table)));
  else
    print_once(options.output.empty() ? text : options.output + "\n");
  // The rows alone are data; who reads them must know what they leave out.
  if (format == TableFormat::csv && !options.json)
    for (const std::string& note : table_notes(table)) fmt::print(stderr, "{}\n", note);
  return 0;
}

void declare_groups(CLI::App& app, StudyTableCommand& options) {
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* help) {
    return app.add_option(name, values, help)->delimiter(',')->allow_extra_args(false);
  };
  list("--metric", options.metrics,
       "columns to average, each with :min or :max where it does not know which is better; the "
       "study's metric, loss, tokens_per_s, median_step_ms, bubble and peak_bytes if not given")
      ->type_name("COLUMN,...");
  list("--by", options.by, "columns that make groups; all axes but run.seed if not given")
      ->type_name("COLUMN,...");
  list("--baseline", options.baseline,
       "the groups that others are compared with, each with the one that has its other values")
      ->type_name("COLUMN=VALUE,...");
  app.add_option("--pair", options.pair, "trials with the same value there are compared")
      ->type_name("COLUMN")
      ->capture_default_str();
  app.add_option("--test", options.test, "of pairs: t (paired t test) or wilcoxon (signed rank)")
      ->check(CLI::IsMember({"t", "wilcoxon"}))
      ->capture_default_str();
  app.add_option("--confidence", options.confidence, "of intervals; p below 1 minus it is marked")
      ->check(number(0, 1))
      ->capture_default_str();
  app.add_option("--where", options.where,
                 "only trials with this value; may be repeated: any value of one column, all "
                 "columns")
      ->type_name("COLUMN=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--sort", options.sort, "by a metric, best first, or by a column of the groups")
      ->type_name("COLUMN");
  app.add_flag("--mixed", options.mixed,
               "average trials of different programs or processors all the same");
}

}  // namespace

Runner add_study_table(CLI::App& app) {
  auto options = std::make_shared<StudyTableCommand>();
  app.add_option("study", options->directory, "the study's folder")->type_name("STUDY")->required();
  declare_groups(app, *options);
  app.add_option("--format", options->format, "text, csv, markdown, latex or html")
      ->capture_default_str();
  app.add_option("--out", options->output, "the file to write; printed if not given")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "print the table as one JSON object, nothing else");
  return [options](MpiEnvironment&) { return run_study_table(*options); };
}

}  // namespace concertina
