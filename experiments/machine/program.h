// Which program this is and how it was called, for records and for comparing ranks.
#pragma once

#include <string>
#include <vector>

namespace concertina {

/// Two programs of one text are the same build: the linker's build-id, a hash of all that it
/// linked.
std::string program_build();

/// Version, commit, compiler and build: what ranks compare and --version says.
std::string program_identity();

/// The path of this program.
std::string own_program();
/// The words of this process' command line.
std::vector<std::string> command_line();
/// `word` for a shell: in quotes where it needs them.
std::string shell_word(const std::string& word);

}  // namespace concertina
