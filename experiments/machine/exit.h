// Error exits of the program: one message, one exit code, no rank left behind. Invariant: the rank
// that reports first aborts the whole job, so that the others stay silent.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// `text` with terminal control bytes replaced with \xNN: text from a broken input or an untrained
/// model may contain any bytes.
std::string terminal_text(const std::string& text);

/// Prints "concertina: error: WHAT\n  at: WHERE\n  try: FIX\n" to stderr; names the rank if >= 0.
void print_error(const Error& error, int rank);

/// Runs `body` and returns its exit code. If it throws, prints the error with its place and fix to
/// stderr and aborts all ranks.
///
/// Most errors, such as a wrong key, occur on all ranks at once, but the user needs only one
/// message. So rank 0 reports at once, and the others wait for it to abort them. A rank that is not
/// aborted reports its own error. This needs no communication, so it cannot hang.
int run_to_exit(MpiEnvironment& mpi, const std::function<int()>& body);

}  // namespace concertina
