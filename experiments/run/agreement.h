// Compares the settings that must be the same on all ranks of a job, before a difference can cause
// hangs or wrong results. Layouts and plans are pure functions of these settings. Invariant: every
// rank leaves agree() with the same result, or all with the same error.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// A value that must be the same on all ranks: a config key, or another fact that affects results.
struct RankClaim {
  std::string key, value;
  bool operator==(const RankClaim&) const = default;
};

/// The claims of this process: program and command, how this thread rounds, variables that set
/// keys, all config keys except paths and threads, a schedule file's contents, `data` (the text's
/// fingerprint), oneDNN's version.
std::vector<RankClaim> claims_of(const RunConfig& config, const std::string& command,
                                 const std::string& data);

/// Collective. Throws Error{bad_input} that names the first claim that differs, its values and
/// their ranks. Returns the instruction set for all ranks: `numerics.isa`, which is refused if a
/// rank lacks it, or the best that every rank supports; empty with a GPU. If all agree, each rank
/// only sends a digest; otherwise each also sends its claims, a few KB, to rank 0.
std::string agree(Communicator& world, const RunConfig& config, const std::vector<RankClaim>& mine);

}  // namespace concertina
