// A run's best model according to the evaluations during training: checkpoint.best. Invariant: only
// the newest commit states which commit is best; no run removes the best commit.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {

/// Key in a run's progress, which commits store: see Selection.
inline constexpr const char* kBestKey = "best";

/// Selects a commit in a directory: the newest, or the best of the run if it keeps one.
enum class Chosen { newest, best };

/// What eval, generate and export read: a checkpoint, and whether the average (optimizer.ema)
/// replaces the weights.
struct CheckpointChoice {
  Chosen chosen = Chosen::newest;
  bool average = false;
};

struct BestCommit {
  std::string by;  // "validation_loss", "accuracy"
  std::int64_t step = 0;
  double value = 0;
};

/// The best commit of the run at the time of the commit with this metadata.
std::optional<BestCommit> best_commit_of(const nlohmann::json& metadata);

/// The best commit of a run, or the newest if it keeps no best one; nullopt if there is no commit.
/// Throws Error{bad_input} if the best commit is missing or damaged.
std::optional<OpenCommit> open_best(const std::string& checkpoints);

/// "step 40, the best of the run by accuracy (0.9123)" or "step 60", for this metadata.
std::string step_text(std::int64_t step, const nlohmann::json& metadata);

}  // namespace concertina
