// A launcher such as mpirun, from a template with {ranks}, {program}, {args} and {hosts}.
// Invariants: no shell reads the words; {args} alone in a word becomes as many words as there are
// arguments, within a word their text, quoted for a shell.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace concertina {

/// "mpirun -n {ranks} {program} {args}" and what Open MPI must know of a machine with few cores.
inline constexpr const char* kUsualLauncher = "mpirun -n {ranks} {program} {args}";
/// The same on hosts that are named.
inline constexpr const char* kHostsLauncher = "mpirun -H {hosts} -n {ranks} {program} {args}";

/// The key of a study that has the template, for errors.
inline constexpr const char* kLauncherKey = "launch.command";

/// The words of `command`: separated by spaces, quotes keep them together. Throws Error{bad_input}
/// that names `where` if a quote is not closed, or there is none.
std::vector<std::string> split_words(const std::string& command, const std::string& where);

/// Throws Error{bad_input} if a placeholder stands for nothing, such as {rank}, or {hosts} without
/// `hosts` ("a:2,b:2"). Braces that a shell has for itself stay: "${NAME}", "{}" and "{ ... }".
std::vector<std::string> launch_words(const std::string& command, int ranks,
                                      const std::string& program,
                                      const std::vector<std::string>& args,
                                      const std::string& where = kLauncherKey,
                                      const std::string& hosts = {});

/// The words as a line that a shell takes apart into them again.
std::string shell_line(const std::vector<std::string>& words);

/// Throws Error{bad_input} if the launcher is no program that there is, has a placeholder that
/// nothing stands for, or none for `hosts`, where there are some.
void require_launcher(const std::string& command, const std::string& where = kLauncherKey,
                      const std::string& hosts = {});

/// Returns what Open MPI must be told where the environment does not say it already, as
/// experiments/env.sh: more ranks than cores are allowed, no rank is bound to a core, root may
/// launch. A daemon on another host ends within seconds once its launch is out of reach.
std::map<std::string, std::string> launch_environment();

/// Lets ranks on other hosts have what is the program's own (CONCERTINA...) in `environment` and in
/// that of this process. srun and MPICH do it for all variables; Open MPI is told by its option -x
/// where `words` have that, by a variable else: it refuses both.
void forward_own_variables(std::vector<std::string>& words,
                           std::map<std::string, std::string>& environment);

}  // namespace concertina
