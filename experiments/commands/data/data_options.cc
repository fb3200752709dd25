#include "experiments/commands/data/data_options.h"

#include <fmt/format.h>

#include "core/error.h"
#include "experiments/commands/python_command.h"
#include "experiments/quality/table_rows.h"
#include "io/datasets/dataset.h"

namespace concertina {

void add_data_options(CLI::App& app, DataFileOptions& options, const char* files) {
  app.add_option("files", options.files, files)->type_name("FILE|@FILE")->required();
  std::vector<std::string> formats;
  for (const std::string_view name : names_of(dataset_formats())) formats.emplace_back(name);
  app.add_option("--format", options.format,
                 "format of the files, as in data.format (default: a token file)")
      ->check(CLI::IsMember(formats));
  app.add_option("--tokenizer", options.tokenizer,
                 "tokenizer, as in data.tokenizer (default: bytes)")
      ->type_name("FILE|bytes");
  add_default_option(app, "--context", options.context, "tokens per sample, as in model.context")
      ->check(whole_number(1, std::int64_t{1} << 24));
  app.add_option("--set", options.sets,
                 "set a config key, such as data.validation=0.1 or data.validation_files=FILE; "
                 "may be repeated")
      ->type_name("TABLE.KEY=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_json_option(app, options);
}

void add_quality_options(CLI::App& app, DataFileOptions& options) {
  add_default_option(app, "--near", options.near,
                     "minimum share of 5-byte sequences that two texts must have in common to "
                     "count as near duplicates; 0: do not search")
      ->type_name("SHARE")
      ->check(number(0, 1));
  app.add_option("--report", options.report, "HTML page to write with findings and examples")
      ->type_name("FILE.html");
}

RunConfig data_config(const DataFileOptions& options) {
  ConfigOptions given;
  given.defaults = {"data.validation=0"};
  std::vector<std::string> files;
  for (const std::string& file : options.files)
    (file.starts_with('@') ? given.sources : files).push_back(file);
  given.sets = options.sets;
  if (!options.format.empty()) given.sets.push_back("data.format=" + options.format);
  if (!options.tokenizer.empty()) given.sets.push_back("data.tokenizer=" + options.tokenizer);
  if (options.given("--context"))
    given.sets.push_back(fmt::format("model.context={}", options.context));
  RunConfig config = load(given);
  // Without a task, tables are treated as classification data.
  if (given.sources.empty() && config.data.documents == "auto" &&
      !config.origins.contains("model.task") && !config.origins.contains("model.family"))
    config.data.documents = "alone";
  if (!files.empty())
    (files_key(config) == "data.text" ? config.data.text : config.data.files) = files;
  return config;
}

int look_at_rows(const DataFileOptions& options, const RunConfig& config,
                 std::map<std::string, std::string> words) {
  if (!options.report.empty()) require_output(options.report, "--report");
  const bool counts_tokens =
      config.origins.contains("data.tokenizer") || config.origins.contains("model.context");
  words["near"] = fmt::format("{}", options.near);
  if (!options.report.empty()) words["report"] = options.report;
  if (options.json) words["json"] = "true";
  return call_python("data-quality", words, table_rows(config, counts_tokens));
}

}  // namespace concertina
