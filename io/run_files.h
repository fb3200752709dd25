// The names of the files in a run directory. Their formats are in io/README.md. Invariant: no other
// source file spells out these names (tests/architecture_test.sh).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

namespace concertina {

/// All effective config keys of the run. A directory with this file is a run.
inline constexpr const char* kConfigFile = "config.toml";
/// A line per step, or per group of steps that were executed together.
inline constexpr const char* kMetricsFile = "metrics.jsonl";
/// A line per event, such as an evaluation, a freeze, or a decision about the layout.
inline constexpr const char* kEventsFile = "events.jsonl";
/// A line per launch: where it ran, with which program, and how it ended.
inline constexpr const char* kLaunchesFile = "launches.jsonl";
/// A line per fault that the ranks of a supervised launch observed before they exited.
inline constexpr const char* kFaultsFile = "faults.jsonl";
/// Locked by the `concertina run` that supervises the run.
inline constexpr const char* kSupervisorLock = "supervisor.lock";
/// A line per restart by `concertina run`: why, from which step, and how long it took.
inline constexpr const char* kRestartsFile = "restarts.jsonl";
/// Results of the last launch that trained.
inline constexpr const char* kResultFile = "result.json";
/// Measured costs of the units and the machine, for predictions.
inline constexpr const char* kCostsFile = "costs.json";
/// The most recently recorded steps; see trace_path().
inline constexpr const char* kTraceFile = "trace.json";
inline constexpr const char* kTensorBoardFolder = "tensorboard";
/// The files of the model in model.from except its weights, and the class names.
inline constexpr const char* kModelFolder = "model";
/// The files of data.tokenizer.
inline constexpr const char* kTokenizerFolder = "tokenizer";
inline constexpr const char* kCheckpointFolder = "checkpoints";  // unless checkpoint.dir is set

/// Returns the path of one of these files in the run `directory`.
inline std::string run_file(const std::string& directory, const char* name) {
  return directory + "/" + name;
}

/// Returns the path of the last recorded trace or, given a step, of the trace that starts there
/// (`trace-00000500.json`), which exists if log.trace_at or log.trace_every requested it.
inline std::string trace_path(const std::string& directory,
                              std::optional<std::int64_t> step = std::nullopt) {
  return step ? fmt::format("{}/trace-{:08}.json", directory, *step)
              : run_file(directory, kTraceFile);
}

}  // namespace concertina
