// Reads the small text files that users name: configs, schedules, costs, machines.
// Invariant: a name that is no regular file (a pipe, a device, a directory) or too large a file is
// refused at once; nothing here waits for another program or fills the memory.
#pragma once

#include <cstdint>
#include <string>

namespace concertina {

/// Returns the whole file. Throws Error{bad_input} with `fix` if `path` is no regular file, cannot
/// be read or has more than `limit` bytes.
std::string read_input_file(const std::string& path, std::uint64_t limit, const std::string& fix);

}  // namespace concertina
