// Checks of a path before it is used: a program that can be run, a file that can be made.
// Invariant: changes nothing.
#pragma once

#include <string>

namespace concertina {

/// Where `program` is: itself if it has a slash, else on PATH; empty if it cannot be executed.
std::string find_program(const std::string& program);

/// Why no file can be made, or replaced, at `path`: it is a device or a directory, or its directory
/// is not there or read-only; empty if one can.
std::string why_not_writable(const std::string& path);

}  // namespace concertina
