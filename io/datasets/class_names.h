// Files with one class name per line.
#pragma once

#include <string>
#include <vector>

namespace concertina {

/// Returns the lines of `path`. Throws Error{bad_input} for a blank line except at the end.
std::vector<std::string> class_names_in(const std::string& path);

}  // namespace concertina
