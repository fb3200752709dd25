// For tests that run on several MPI ranks: tests/mpi_main.cc is their main().
// Invariant: every rank runs the same tests in the same order; a failure on any rank fails all.
#pragma once

#include "parallel/comm/communicator.h"

namespace concertina::test {

/// All ranks of the job. The harness uses another one, so a test that fails halfway does not
/// disturb later verdicts; tests that may fail halfway split their own from it.
Communicator& world();

}  // namespace concertina::test
