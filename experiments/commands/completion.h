// What could come next on a command line, for completion in a shell.
// Invariant: it comes from the parser's own tree of subcommands and options and from the table of
// config keys; nothing is listed a second time.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace concertina {

/// Candidates for the last of `words`, which may be empty; the words before it are complete, the
/// program's name is not among them. Ascending. One that ends with '=' or '/' wants more.
std::vector<std::string> complete(const CLI::App& program, const std::vector<std::string>& words);

/// The script that has `shell` (bash or zsh) ask this program.
std::string completion_script(const std::string& shell);

}  // namespace concertina
