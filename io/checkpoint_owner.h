// Whose a directory of checkpoints is.
// Invariant: a directory that holds commits of one run is never written to by another, also where
// the two have the same config; a run keeps its commits when its directory is moved.
#pragma once

#include <string>

namespace concertina {

/// A run, wherever its directory is: `id` is made at its first start and stays.
struct RunIdentity {
  std::string id;         // 32 hex digits
  std::string name;       // run.name, for messages
  std::string directory;  // absolute, as of now
};

/// The identity of the run in `directory`, which must exist; its file run.id is made if absent.
RunIdentity run_identity(const std::string& directory);

/// Makes `checkpoints`, which this process has locked, `run`'s. Bad input if it holds checkpoints
/// of another run, or of a copy of this one. One without checkpoints, or without an owner (as older
/// versions left them), becomes `run`'s.
void claim_checkpoints(const std::string& checkpoints, const RunIdentity& run);

}  // namespace concertina
