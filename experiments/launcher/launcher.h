// Builds the command of a launcher such as mpirun from a template with {ranks}, {program}, {args}
// and {hosts}. Invariants: no shell interprets the words; a word {args} expands to one word per
// argument, {args} within a word to all arguments, quoted for a shell.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace concertina {

/// The default launcher on one host.
inline constexpr const char* kDefaultLauncher = "mpirun -n {ranks} {program} {args}";
/// The default launcher on several hosts.
inline constexpr const char* kHostsLauncher = "mpirun -H {hosts} -n {ranks} {program} {args}";

/// The study key that contains the template, for errors.
inline constexpr const char* kLauncherKey = "launch.command";

/// Splits `command` at spaces outside quotes. Throws Error{bad_input} that names `where` if a quote
/// is not closed or there is no word.
std::vector<std::string> split_words(const std::string& command, const std::string& where);

/// Throws Error{bad_input} for an unknown placeholder, such as {rank}, or for {hosts} if `hosts`
/// (such as "a:2,b:2") is empty. Keeps braces that belong to a shell: "${NAME}", "{}", "{ ... }".
std::vector<std::string> launch_words(const std::string& command, int ranks,
                                      const std::string& program,
                                      const std::vector<std::string>& args,
                                      const std::string& where = kLauncherKey,
                                      const std::string& hosts = {});

/// The words as one line that a shell splits into the same words.
std::string shell_line(const std::vector<std::string>& words);

/// Throws Error{bad_input} if the launcher is not an executable program, has an unknown
/// placeholder, or lacks {hosts} although `hosts` is not empty.
void require_launcher(const std::string& command, const std::string& where = kLauncherKey,
                      const std::string& hosts = {});

/// Returns the Open MPI settings from experiments/env.sh that the environment does not contain yet:
/// more ranks than cores are allowed, no rank is bound to a core, root may launch, and a daemon on
/// another host exits within seconds once it has lost its connection to the launch.
std::map<std::string, std::string> launch_environment();

/// Forwards the program's variables (CONCERTINA...) in `environment` and in this process's
/// environment to ranks on other hosts. srun and MPICH forward all variables; for Open MPI, uses
/// its option -x if `words` contain it, otherwise a variable, since it rejects both together.
void forward_own_variables(std::vector<std::string>& words,
                           std::map<std::string, std::string>& environment);

}  // namespace concertina
