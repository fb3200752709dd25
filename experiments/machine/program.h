// Which program this is and how it was called, for records and for comparing ranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace concertina {

/// Two programs of one text are the same build: the linker's build-id, a hash of all that it
/// linked.
std::string program_build();

/// Version, commit, compiler and build: what ranks compare and --version says.
std::string program_identity();

/// What starts this program: its path or, in a package for several MPIs, that of the script that
/// chooses one (experiments/install/start.sh).
std::string own_program();
/// The file that a process executes once `program` has started: another one where that is a script
/// of a package.
std::string executable_of(const std::string& program);
/// The folder `name` ("machines", "recipes") of the files that go with this program, of an
/// installation or of its sources; empty where there is none.
std::filesystem::path shipped_folder(const std::string& name);
/// The words of this process' command line.
std::vector<std::string> command_line();
/// `word` for a shell: in quotes where it needs them.
std::string shell_word(const std::string& word);

}  // namespace concertina
