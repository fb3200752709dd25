// The best model of a run by the evaluations during its training: checkpoint.best.
// Invariant: the newest commit says which commit that is, so the two never contradict each other;
// no run removes it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {

/// Key of a run's progress, which commits keep: see Selection.
inline constexpr const char* kBestKey = "best";

/// Which commit of a directory of them is meant: the newest, or the best of the run if it keeps
/// one.
enum class Chosen { newest, best };

struct BestCommit {
  std::string by;  // "validation_loss", "accuracy"
  std::int64_t step = 0;
  double value = 0;
};

/// The best commit that the run had when it made the one with this metadata.
std::optional<BestCommit> best_commit_of(const nlohmann::json& metadata);

/// The best commit of a run, or the newest where it keeps no best one; nothing if there is none.
/// Input error: it is not there, or damaged.
std::optional<OpenCommit> open_best(const std::string& checkpoints);

/// "step 40, the best of the run by accuracy (0.9123)", "step 60" for a commit with this metadata.
std::string step_text(std::int64_t step, const nlohmann::json& metadata);

}  // namespace concertina
