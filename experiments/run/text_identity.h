// Verifies that the files of a run are the same on every rank, and that a text stays the same
// during the run. Invariant: files are read completely once per copy, not per rank: by rank 0, and
// by the first rank of a host whose files differ from rank 0's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/corpus.h"
#include "io/datasets/dataset.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct TextIdentity {
  std::string sampled;  // Corpus::fingerprint()
  std::string whole;    // Corpus::whole_sha256()
};

/// The identity of the files of rank 0's `dataset`, which are hashed unless their digest is known.
/// Throws Error{bad_input} that names a rank if it reads a different text. Caches the digest in
/// `directory`/text.json, which need not exist and is written only if `remember` is true.
/// `progress`: see whole_sha256(). Collective.
TextIdentity text_identity(Communicator& world, const Dataset& dataset,
                           const std::string& directory, bool remember,
                           const std::function<void()>& progress);

/// Throws Error{bad_input} that names `where` and a rank if its `corpus` differs from rank 0's.
/// `what`: a name for the files. Reads nothing if all ranks see the same files. Collective.
void require_same_files(Communicator& world, const Corpus& corpus, const std::string& what,
                        const std::string& where);

/// Throws Error{failure} on all ranks if a rank's files no longer have `stamps` and their SHA-256
/// is not `whole`; otherwise updates `stamps`. Collective.
void require_same_text(Communicator& world, const Corpus& corpus, const std::string& whole,
                       std::vector<FileStamp>& stamps);

}  // namespace concertina
