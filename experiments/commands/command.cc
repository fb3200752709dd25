#include "experiments/commands/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/text/nearest.h"
#include "experiments/config/config_environment.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/model_from.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// "table.key=value" without --set.
bool is_assignment(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  return equals != std::string::npos && argument.front() != '@' && argument.find('.') < equals &&
         argument.find('/') >= equals;
}

/// Suggestions for a mistyped `argument`.
std::string sources_near(std::string argument) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> runs;
  std::error_code error;
  for (fs::directory_iterator it("runs", error), end; !error && it != end; it.increment(error))
    if (exists_at(it->path() / kConfigFile)) runs.push_back(it->path().string());
  std::ranges::sort(runs);
  if (argument.find('/') == std::string::npos) argument = "runs/" + argument;
  std::vector<std::string_view> known(runs.begin(), runs.end());
  const std::string_view near = nearest_word(argument, known);
  known.resize(std::min(known.size(), kMost));
  return known.empty() ? "@FILE.toml" : one_of(near, known) + "; or @FILE.toml";
}

void read_source(const std::string& argument, RunConfig& config) {
  if (argument.size() > 1 && argument.front() == '@')
    read_config_file(argument.substr(1), config);
  else if (is_folder(argument))
    read_run_directory(argument, config);
  else if (find_key(argument) != nullptr)
    throw_input(fmt::format("the key {} has no value", argument), "command line",
                argument + "=VALUE");
  else
    throw_input(fmt::format("'{}' is neither @FILE.toml nor a run directory", argument),
                "command line", exists_at(argument) ? "@" + argument : sources_near(argument));
}

/// Shortens the text, because an invalid argument may have any length.
std::string brief(const std::string& text) {
  constexpr std::size_t kMost = 60;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

}  // namespace

void CommandOptions::needs(const char* option, const std::string& other, bool there) const {
  if (given(option) && !there)
    throw_input(fmt::format("{} has no effect without {}", option, other), option,
                fmt::format("add {}, or remove {}", other, option));
}

void CommandOptions::excludes(const char* option, const std::string& other, bool there) const {
  if (given(option) && there)
    throw_input(fmt::format("{} has no effect with {}", option, other), option,
                fmt::format("remove {} or {}", option, other));
}

void add_config_options(CLI::App& app, ConfigOptions& options) {
  app.add_option("config", options.sources,
                 "@FILE.toml (later files override earlier ones), a run directory, or an "
                 "assignment as for --set")
      ->type_name("@FILE|RUN|TABLE.KEY=VALUE");
  app.add_option("--set", options.sets,
                 "set a config key, overriding files and environment variables; may be repeated")
      ->type_name("TABLE.KEY=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag_callback(
      "--help-config", [] { throw CLI::CallForAllHelp(); },
      "print all config keys with types, defaults and meanings");
}

void add_json_option(CLI::App& app, CommandOptions& options) {
  app.add_flag("--json", options.json, "print only one JSON object");
}

void add_choice_options(CLI::App& app, CheckpointChoice& choice) {
  choice.chosen = Chosen::best;
  app.add_flag_callback(
      "--newest", [&] { choice.chosen = Chosen::newest; },
      "use the newest checkpoint even if the run keeps its best one (checkpoint.best)");
  app.add_flag("--average", choice.average,
               "use the moving average of the weights instead of the weights (optimizer.ema)");
}

CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  return {[low, high](std::string& text) -> std::string {
            std::int64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [parsed, error] = std::from_chars(text.data(), end, value);
            const bool zeros = text.size() > 1 &&
                               text.find_first_not_of("+-") != std::string::npos &&
                               text[text.find_first_not_of("+-")] == '0';
            if (error == std::errc::invalid_argument || parsed != end || zeros)
              return fmt::format("expected a decimal integer, got '{}'", brief(text));
            if (error != std::errc{} || value < low || value > high)
              return fmt::format("{} is not in range {} to {}", brief(text), low, high);
            return {};
          },
          fmt::format("from {} to {}", low, high)};
}

CLI::Validator number(double low, double high) {
  return {[low, high](std::string& text) -> std::string {
            double value = 0;
            const char* end = text.data() + text.size();
            const auto [parsed, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc::invalid_argument || parsed != end)
              return fmt::format("expected a number, got '{}'", brief(text));
            if (error != std::errc{} || !(value >= low && value <= high))
              return fmt::format("{} is not in range {} to {}", brief(text), low, high);
            return {};
          },
          fmt::format("from {} to {}", low, high)};
}

int with_places(const RunConfig& config, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::string place;
    bool known = false;
    for (const std::string& part : CLI::detail::split(error.where(), ',')) {
      const std::string name = CLI::detail::trim_copy(part);
      const bool is_key = find_key(name) != nullptr;
      known = known || is_key;
      place += (place.empty() ? "" : ", ") + (is_key ? config.where(name) : name);
    }
    if (!known) throw;
    throw Error(error.code(), error.message(), place, error.fix(), error.system_error());
  }
}

RunConfig load(const ConfigOptions& options) {
  RunConfig config;
  for (const std::string& assignment : options.defaults) set_config(assignment, config);
  std::vector<std::string> assignments;
  for (const std::string& argument : options.sources) {
    if (is_assignment(argument))
      assignments.push_back(argument);
    else
      read_source(argument, config);
  }
  read_environment(environment_variables(), config);
  for (const std::string& assignment : assignments) set_config(assignment, config);
  for (const std::string& assignment : options.sets) set_config(assignment, config);
  adopt_model_from(config);
  validate(config);
  return config;
}

void require_nothing_at(const std::string& path, const std::string& fix) {
  if (exists_at(path)) throw_input("the file already exists", path, fix);
}

void require_output(const std::string& path, const std::string& option) {
  std::string why = why_not_writable(path);
  const fs::path name = fs::path(path).filename();
  if (why.empty() && exists_at(path) &&
      (name == kResultsFile || name == kStudyFile || name == kRecordFile))
    why = "this name is reserved for study records";
  if (!why.empty())
    throw_input(fmt::format("cannot write this file: {}", why), path,
                fmt::format("{} FILE in a writable directory", option));
}

}  // namespace concertina
