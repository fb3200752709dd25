#include "experiments/commands/study_launch.h"

#include <fmt/format.h>

#include <csignal>
#include <ctime>
#include <filesystem>

#include "core/error.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostStudyBytes = 16 << 20;

sigset_t child_signal() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return child;
}

}  // namespace

NamedStudy read_named_study(const std::string& path, const std::string& directory) {
  NamedStudy study;
  if (std::filesystem::is_directory(path)) {
    study.spec = read_study_folder_spec(path);
    study.toml = read_file(StudyPaths(path, study.spec).study(), kMostStudyBytes);
    study.folder = path;
    return study;
  }
  study.spec = read_study_file(path, study.toml);
  const std::string& name = study.spec.name;
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
    throw_input(fmt::format("'{}' is no name of a folder", name), path, "name = \"NAME\"");
  study.folder = (std::filesystem::path(directory) / name).string();
  return study;
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
