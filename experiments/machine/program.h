// The identity and command line of this program, for records and for comparing ranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace concertina {

/// The linker's build-id, a hash of everything linked; equal for programs of the same build.
std::string program_build();

/// Version, commit, compiler and build, for comparing ranks and for --version.
std::string program_identity();

/// The path that starts this program: its own or, in a package for several MPI libraries, the path
/// of the script that selects one of them (experiments/install/start.sh).
std::string own_program();
/// The file that a process executes once `program` has been started; it differs from `program` if
/// that is the script of a package.
std::string executable_of(const std::string& program);
/// The folder `name` ("machines", "recipes") among the files shipped with this program, installed
/// or in the source tree; empty if there is none.
std::filesystem::path shipped_folder(const std::string& name);
/// The words of this process's command line.
std::vector<std::string> command_line();
/// `word` quoted for a shell if necessary.
std::string shell_word(const std::string& word);

}  // namespace concertina
