// What the system says of another process.
#pragma once

#include <sys/types.h>

namespace concertina {

/// Whether a signal such as SIGSTOP has stopped `process`, as opposed to a debugger, or storage
/// that is slow.
bool stands_still(pid_t process);

}  // namespace concertina
