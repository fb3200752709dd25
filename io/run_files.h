// The names of what lies in a run's directory. io/README.md has their formats.
// Invariant: no other file of the program spells these names (tests/architecture_test.sh).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

namespace concertina {

/// Holds all keys of the run that have an effect. A directory with this file is a run.
inline constexpr const char* kConfigFile = "config.toml";
/// Has a line per step, or per several steps that were done at once.
inline constexpr const char* kMetricsFile = "metrics.jsonl";
/// Has a line per evaluation, freeze, change of the layout, and decision about one.
inline constexpr const char* kEventsFile = "events.jsonl";
/// Has a line per launch: where it ran, with which program, and how it ended.
inline constexpr const char* kLaunchesFile = "launches.jsonl";
/// Has a line per fault that the ranks of a supervised launch have seen before they ended.
inline constexpr const char* kFaultsFile = "faults.jsonl";
/// Is locked by the `concertina run` of the run.
inline constexpr const char* kSupervisorLock = "supervisor.lock";
/// Has a line per restart by `concertina run`: why, from which step, and how long it took.
inline constexpr const char* kRestartsFile = "restarts.jsonl";
/// Holds the figures of the last launch that trained.
inline constexpr const char* kResultFile = "result.json";
/// Holds what the units and the machine took, for predictions.
inline constexpr const char* kCostsFile = "costs.json";
/// Holds the steps that were recorded last; see trace_path().
inline constexpr const char* kTraceFile = "trace.json";
/// Is the page that `report` writes, on a run or on a study.
inline constexpr const char* kPageFile = "report.html";
inline constexpr const char* kTensorBoardFolder = "tensorboard";
/// Holds what the model of model.from came with besides its weights, and the names of classes.
inline constexpr const char* kModelFolder = "model";
/// Holds the files of data.tokenizer.
inline constexpr const char* kTokenizerFolder = "tokenizer";
inline constexpr const char* kCheckpointFolder = "checkpoints";  // unless checkpoint.dir is set

/// The path of one of these in the run `directory`.
inline std::string run_file(const std::string& directory, const char* name) {
  return directory + "/" + name;
}

/// The trace of the last recorded window; with a step, that of the window which begins there
/// (`trace-00000500.json`), which a run has whose log.trace_at or log.trace_every say so.
inline std::string trace_path(const std::string& directory,
                              std::optional<std::int64_t> step = std::nullopt) {
  return step ? fmt::format("{}/trace-{:08}.json", directory, *step)
              : run_file(directory, kTraceFile);
}

}  // namespace concertina
