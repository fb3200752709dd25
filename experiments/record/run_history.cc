#include "experiments/record/run_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/record/run_lines.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/file.h"
#include "io/log_lines.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;

constexpr std::uint64_t kTail = 64 << 10;  // enough bytes for the last line of metrics.jsonl

/// Returns `path`.1, or `path` with the first free number.
std::string free_name(const std::string& path) {
  for (int number = 1;; ++number)
    if (const std::string name = fmt::format("{}.{}", path, number); !stdfs::exists(name))
      return name;
}

}  // namespace

std::int64_t last_step_in(const std::string& path) {
  if (!is_file(path)) return 0;
  const File file = open_regular(path, FilePlace::logged);
  const std::uint64_t size = file.size();
  std::string text(std::min(size, kTail), '\0');
  file.read_at(size - text.size(), std::as_writable_bytes(std::span(text)));
  while (!text.empty()) {
    const std::size_t begin = text.find_last_of('\n') + 1;  // 0 without one
    const auto line = parse_json(std::string_view(text).substr(begin));
    if (line.is_object() && line.contains("step") && line["step"].is_number_integer())
      return line["step"];
    text.resize(begin > 0 ? begin - 1 : 0);
  }
  return 0;
}

RunHistory read_history(const std::string& directory) {
  RunHistory history;
  history.steps = last_step_in(run_file(directory, kMetricsFile));
  const std::string path = run_file(directory, kConfigFile);
  if (!is_file(path)) return history;
  try {
    RunConfig config;
    read_config_file(path, config);
    history.config = std::move(config);
  } catch (const Error& error) {
    log::warn("cannot compare {} with this launch: {}", path, error.message());
  }
  return history;
}

bool is_finished(const std::string& directory, const RunConfig& config, bool or_longer) {
  const nlohmann::json result = read_log_json(run_file(directory, kResultFile));
  const std::vector<nlohmann::json> launches = read_lines(run_file(directory, kLaunchesFile));
  // The exit code of a killed launch is null.
  if (!result.is_object() || launches.empty() ||
      launches.back().value("exit", nlohmann::json()) != 0)
    return false;
  if (config.run.patience > 0 && text_in(result, "ended_by") == "run.patience") return true;
  const bool by_epochs = config.run.epochs > 0;
  const double done = number_in(result, by_epochs ? "epochs" : "steps");
  const auto asked = static_cast<double>(by_epochs ? config.run.epochs : config.run.steps);
  return or_longer ? done >= asked : done == asked;
}

std::vector<std::string> changed_keys(const RunConfig& before, const RunConfig& now) {
  const RunConfig then = with_absolute_paths(before), here = with_absolute_paths(now);
  std::vector<std::string> changes;
  for (const Key& key : config_keys()) {
    if (key.name == "run.dir" || key.name == "run.name") continue;
    const std::string was = value_text(key, then), is = value_text(key, here);
    if (was != is) changes.push_back(fmt::format("{} = {} (was {})", key.name, is, was));
  }
  return changes;
}

bool has_committed(const std::string& directory) {
  return std::ranges::any_of(
      read_lines(run_file(directory, kEventsFile)),
      [](const nlohmann::json& event) { return is_event(event, EventKind::checkpoint); });
}

void require_no_steps(const RunHistory& history, const RunConfig& config) {
  if (history.steps == 0) return;
  const std::string now = checkpoint_directory(config), run = run_directory(config);
  std::string then = now;
  if (history.config && !history.config->checkpoint.dir.empty())
    then = history.config->checkpoint.dir;
  else if (history.config && !config.checkpoint.dir.empty())
    then = run_file(run, kCheckpointFolder);
  std::error_code ignored;
  const bool moved =
      !stdfs::equivalent(then, now, ignored) && stdfs::absolute(then) != stdfs::absolute(now);
  const std::string restart = "--from-scratch to restart from step 0 (old logs are renamed)";
  if (moved)
    throw_input(fmt::format("{} has trained {}, but there is no checkpoint in {}; "
                            "config.toml has checkpoint.dir = {}{}",
                            run, counted(history.steps, "step"), now, then,
                            newest_commit(then) ? "" : ", which has none"),
                config.where("checkpoint.dir"),
                fmt::format("--set checkpoint.dir={}, or {}", then, restart));
  throw_input(fmt::format("{} has trained {}, but there is no checkpoint in {}: it was "
                          "removed or is not mounted, or the run stopped before its first one "
                          "(checkpoint.every = {})",
                          run, counted(history.steps, "step"), now, config.checkpoint.every),
              run_file(run, kMetricsFile), "restore the checkpoints, or " + restart);
}

void move_aside(const std::string& directory) {
  for (const char* name : {kMetricsFile, kEventsFile, kTensorBoardFolder, kResultFile, kTraceFile,
                           kCostsFile, kConfigFile}) {
    const std::string path = run_file(directory, name);
    if (!stdfs::exists(path)) continue;
    const std::string to = free_name(path);
    rename_path(path, to);
    log::info("renamed {} to {}", path, stdfs::path(to).filename().string());
  }
  sync_directory(directory);
}

}  // namespace concertina
