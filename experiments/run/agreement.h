// The settings that all ranks of a job must have alike, compared before anything that can hang on a
// difference or train to wrong numbers. Layouts and plans are pure functions of what is compared.
// Invariant: every rank leaves agree() with the same answer, or all with the same error.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// One thing that must be the same: a config key, or what else decides the numbers.
struct RankClaim {
  std::string key, value;
  bool operator==(const RankClaim&) const = default;
};

/// The claims of this process: program and command, how this thread rounds, variables that set
/// keys, every config key but paths and threads, the content of a schedule file, `data` (the
/// fingerprint of the text), the version of oneDNN.
std::vector<RankClaim> claims_of(const RunConfig& config, const std::string& command,
                                 const std::string& data);

/// Collective. Throws bad input that names the first claim that differs, with its values and the
/// ranks that have them. Returns the instruction set for all ranks: `numerics.isa`, which is
/// refused if a rank lacks it, or the best that every rank has; empty with a GPU. Where all agree,
/// the ranks exchange a digest each; else each also sends its claims, some KB, to rank 0.
std::string agree(Communicator& world, const RunConfig& config, const std::vector<RankClaim>& mine);

}  // namespace concertina
