#include "experiments/launcher/child_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/process_state.h"
#include "experiments/launcher/launcher.h"
#include "experiments/machine/program.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "CONCERTINA_MARK";

/// Adds the files that MPI has created for `process` and that the process has mapped: shared memory
/// of MPI's transports, and Open MPI's session folder, "ompi.HOST.UID/pid.N" or "ompi.N".
void add_shared_files(pid_t process, std::set<std::string>& files) {
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(maps, line);) {
    if (const std::size_t session = line.find("/ompi."); session != std::string::npos) {
      const std::size_t launch = line.find("/pid.", session);
      const std::size_t last = launch == std::string::npos ? session : launch;
      files.insert(line.substr(line.find('/'), line.find('/', last + 1) - line.find('/')));
    }
    const std::size_t at = line.find("/dev/shm/");
    if (at == std::string::npos) continue;
    const std::string name = fs::path(line.substr(at)).filename();
    for (const char* own : {"vader_segment.", "sm_segment.", "mpich_shm_", "mpich_shar_tmp"})
      if (name.starts_with(own) && name.find(' ') == std::string::npos)
        files.insert(line.substr(at));
  }
}

/// Adds the Open MPI session folder of `launcher`, which a rank may not have used before it exited.
void add_session(pid_t launcher, std::set<std::string>& files) {
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::temp_directory_path(error), error)) {
    const std::string name = entry.path().filename().string();
    if (name == "ompi." + std::to_string(launcher)) files.insert(entry.path());
    const fs::path own = entry.path() / ("pid." + std::to_string(launcher));
    if (name.starts_with("ompi.") && fs::is_directory(own, error)) files.insert(own);
  }
}

/// The value of a variable in the environment of `process`; nullopt if it is not set.
std::optional<std::string> variable_of(pid_t process, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  for (std::string variable; std::getline(file, variable, '\0');)
    if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
  return std::nullopt;
}

/// The number at the start of `text`; 0 if there is none.
int leading_number(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The number of ranks that MPI started on the host of `process`; 0 if unknown.
std::size_t ranks_beside(pid_t process) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const auto ranks = variable_of(process, name))
      return static_cast<std::size_t>(std::max(0, leading_number(*ranks)));
  return 0;
}

/// Whether `path` is the session folder of a live process, such as a daemon.
bool is_in_use(const fs::path& path) {
  const std::string name = path.filename(), extension = path.extension();  // ".N"
  if (!name.starts_with("pid.") && !name.starts_with("ompi.")) return false;
  const pid_t pid = leading_number(std::string_view(extension).substr(1));
  return pid > 0 && ::kill(pid, 0) == 0;
}

void remove_files(const std::set<std::string>& files) {
  std::error_code ignored;
  for (const std::string& file : files)
    if (!is_in_use(file)) fs::remove_all(file, ignored);
}

/// The target of a link in /proc/N; empty if it cannot be read.
std::string link_of(pid_t process, const char* name) {
  std::error_code unknown;
  return fs::read_symlink(fmt::format("/proc/{}/{}", process, name), unknown).string();
}

/// Whether `process` is alive and runs `program`, even if it was rebuilt since ("PATH (deleted)").
bool executes(pid_t process, const std::string& program) {
  return link_of(process, "exe").starts_with(executable_of(program));
}

Process started(ChildOptions& options) {
  File log;
  if (!options.log.empty()) {
    log = File(options.log, File::Mode::append);
    options.process.out = options.process.errors = log.descriptor();
  }
  options.process.terminate_with_parent = true;
  options.process.environment.insert_or_assign(kMark, options.mark);
  forward_own_variables(options.process.words, options.process.environment);
  return Process(options.process);
}

}  // namespace

std::vector<pid_t> marked(const std::string& mark, const std::string& program) {
  const std::string own_host = link_of(getpid(), "ns/net");  // differs on emulated hosts
  std::vector<pid_t> found;
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", error)) {
    const pid_t pid = leading_number(process.path().filename().string());
    if (pid == 0 || pid == getpid() || (!program.empty() && !executes(pid, program))) continue;
    if (link_of(pid, "ns/net") == own_host && variable_of(pid, kMark) == mark) found.push_back(pid);
  }
  return found;
}

ChildProcess::ChildProcess(ChildOptions options)
    : mark_(options.mark), program_(options.program), started_(now()), process_(started(options)) {}

bool ChildProcess::has_descendants() const {
  return !process_.killed() && !mark_.empty() && !marked(mark_).empty();
}

ProcessFacts ChildProcess::look() {
  ProcessFacts facts{.at = now(), .started = started_here_};
  if (process_.killed() || mark_.empty() || program_.empty()) return facts;
  constexpr double kShareOfAge = 0.1, kLongestSeconds = 10;
  if (found_.empty() || now() > look_through_ ||
      !std::ranges::all_of(found_, [&](pid_t pid) { return executes(pid, program_); })) {
    found_ = marked(mark_, program_);
    for (const pid_t pid : found_) add_shared_files(pid, shared_);
    if (!found_.empty()) facts.started = started_here_ = ranks_beside(found_.front());
    look_through_ = now() + std::min(kLongestSeconds, kShareOfAge * (now() - started_));
  }
  facts.ranks = found_.size();
  facts.stopped = static_cast<std::size_t>(std::ranges::count_if(found_, is_stopped));
  facts.launcher_stopped = is_stopped(process_.pid());
  return facts;
}

void ChildProcess::kill_program() {
  for (const pid_t pid : marked(mark_, program_)) {
    add_shared_files(pid, shared_);
    ::kill(pid, SIGKILL);
  }
}

void ChildProcess::kill_all() {
  if (process_.killed()) return;
  add_session(process_.pid(), shared_);
  process_.signal(SIGKILL);
  if (!mark_.empty()) kill_marked(mark_);
  process_.kill();
  remove_files(shared_);
}

int kill_marked(const std::string& mark) {
  constexpr int kRounds = 200;
  std::vector<pid_t> found = marked(mark);
  const auto count = static_cast<int>(found.size());
  std::set<std::string> shared;
  for (const pid_t pid : found) {
    add_shared_files(pid, shared);
    add_session(pid, shared);
  }
  for (int round = 0; round < kRounds && !found.empty(); ++round) {
    for (const pid_t pid : found) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    found = marked(mark);
  }
  remove_files(shared);
  return count;
}

}  // namespace concertina
