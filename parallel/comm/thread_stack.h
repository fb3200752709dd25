// The call stack of a thread of this process, taken from another thread.
// Invariant: the inspected thread only runs an async-signal-safe signal handler; a thread blocked
// in the kernel (storage) is not disturbed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace concertina {

/// Installs a handler for SIGURG, which is otherwise unused. Call it once before stack_of().
void prepare_stacks();

/// Returns the call stack of `thread`, innermost first: "function at file:line" if debug
/// information is available, otherwise "0x1234 in program" for addr2line. Empty if the thread does
/// not answer within a second.
std::vector<std::string> stack_of(pid_t thread);

}  // namespace concertina
