// Reads plain or gzip files, regardless of their names.
#pragma once

#include <string>

namespace concertina {

/// Returns the whole file, decompressed if it has a gzip header. Throws Error{bad_input} if it
/// exceeds 4 GiB or is damaged or truncated.
std::string read_maybe_gzip(const std::string& path);

}  // namespace concertina
