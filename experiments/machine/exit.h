// How the program ends when something went wrong: one message, one exit code, no rank left behind.
// Invariant: the rank that speaks ends the whole job; the others stay silent unless nobody does.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// `text` with \xNN in place of bytes that steer a terminal: what a broken input or an untrained
/// model says may hold any.
std::string terminal_text(const std::string& text);

/// Prints "concertina: error: WHAT\n  at: WHERE\n  try: FIX\n" on stderr; names the rank unless it
/// is negative.
void print_error(const Error& error, int rank);

/// Runs `body` and returns its exit code. If it throws, prints what, where and what to try on
/// stderr and ends all ranks.
///
/// Most errors meet every rank at once (a wrong key, say), and the user wants one message. So rank
/// 0 speaks at once, and the others give it a moment to end them: if they are still alive after
/// it, the error is theirs alone and they speak. That needs no communication, so it cannot hang.
int run_to_exit(MpiEnvironment& mpi, const std::function<int()>& body);

}  // namespace concertina
