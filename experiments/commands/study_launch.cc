#include "experiments/commands/study_launch.h"

#include <fmt/format.h>

#include <csignal>
#include <ctime>
#include <filesystem>

#include "core/error.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

sigset_t child_signal() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return child;
}

}  // namespace

StudySpec read_named_study(const std::string& file, std::string& toml) {
  StudySpec spec = read_study_file(file, toml);
  const bool plain = !spec.name.empty() && spec.name.find('/') == std::string::npos &&
                     spec.name != "." && spec.name != "..";
  if (!plain)
    throw_input(fmt::format("'{}' is no name of a folder", spec.name), file, "name = \"NAME\"");
  return spec;
}

std::string study_folder_of(const std::string& directory, const StudySpec& spec) {
  return (std::filesystem::path(directory) / spec.name).string();
}

void require_no_launcher(const std::string& command) {
  if (expected_world_size() > 1)
    throw_input(
        "a study launches its trials itself", "command line",
        fmt::format("concertina study {} without mpirun or srun; [launch] has their launcher",
                    command));
}

void hold_study_signals() {
  hold_stop_signals();
  const sigset_t child = child_signal();
  sigprocmask(SIG_BLOCK, &child, nullptr);
}

void wait_for_trials() {
  const sigset_t child = child_signal();
  const timespec soon{.tv_sec = 0, .tv_nsec = 100'000'000};
  sigtimedwait(&child, nullptr, &soon);
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace concertina
