// The files that a run reads, the same on every rank: a text at its start and as long as it lasts.
// Invariant: files are read whole once per copy, not per rank: by rank 0, and by the first rank of
// a host that sees files which are not those of rank 0.
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

/// The identity of the files of rank 0's `dataset`, verified where their digest is not known yet.
/// Throws bad input that names a rank if it reads another text. The digest is remembered in
/// `directory`/text.json, which need not exist; only read there unless `remember`. `progress`: as
/// of whole_sha256(). Collective.
TextIdentity text_identity(Communicator& world, const Dataset& dataset,
                           const std::string& directory, bool remember,
                           const std::function<void()>& progress);

/// Throws bad input that names `where`, and a rank whose `corpus` has not the bytes of rank 0's:
/// `what` they are. Nothing is read where all ranks see the same files. Collective.
void require_same_files(Communicator& world, const Corpus& corpus, const std::string& what,
                        const std::string& where);

/// Throws a failure, on all ranks, if a rank's files are not what they were at `stamps` and their
/// content is not `whole` any more; else `stamps` are theirs as of now. Collective.
void require_same_text(Communicator& world, const Corpus& corpus, const std::string& whole,
                       std::vector<FileStamp>& stamps);

}  // namespace concertina
