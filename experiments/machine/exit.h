// How the program ends when something went wrong: one message, one exit code, no rank left behind.
// Invariant: the rank that speaks ends the whole job; the others stay silent unless nobody does.
#pragma once

#include <functional>

#include "core/error.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// Runs `body` and returns its exit code. If it throws, prints what, where and what to try on
/// stderr and ends all ranks.
///
/// Most errors meet every rank at once (a wrong key, say), and the user wants one message. So rank
/// 0 speaks at once, and the others give it a moment to end them: if they are still alive after
/// it, the error is theirs alone and they speak. That needs no communication, so it cannot hang.
int run_to_exit(MpiEnvironment& mpi, const std::function<int()>& body);

}  // namespace concertina
