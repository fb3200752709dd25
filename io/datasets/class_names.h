// Files of the names of classes: one a line.
#pragma once

#include <string>
#include <vector>

namespace concertina {

/// The lines of `path`; blank ones may only be at its end. Input errors name the line.
std::vector<std::string> class_names_in(const std::string& path);

}  // namespace concertina
