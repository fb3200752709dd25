// Where a thread of this process is: its stack of calls, taken from outside of it.
// Invariant: the thread itself only runs a signal handler that is async-signal-safe; a thread that
// the system holds (storage) is left where it is.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace concertina {

/// To be called once by any thread before stack_of(): SIGURG, which nobody here uses, gets a
/// handler.
void prepare_stacks();

/// The calls of `thread`, innermost first: "function at file:line" where the program knows them,
/// else "0x1234 in program", for addr2line. Empty if it does not answer within a second. Not of
/// itself.
std::vector<std::string> stack_of(pid_t thread);

}  // namespace concertina
