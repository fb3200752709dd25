#include "experiments/study/child_process.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "CONCERTINA_TRIAL";

/// `program`: that they execute; empty: any.
std::vector<pid_t> marked(const std::string& mark, const std::string& program = "") {
  const std::string entry = std::string(kMark) + "=" + mark;
  std::vector<pid_t> found;
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", error)) {
    const std::string name = process.path().filename().string();
    pid_t pid = 0;
    const auto [parsed, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc{} || parsed != name.data() + name.size() || pid == getpid()) continue;
    // One that was built anew since is "PATH (deleted)".
    if (std::error_code unknown;
        !program.empty() &&
        !fs::read_symlink(process.path() / "exe", unknown).string().starts_with(program))
      continue;
    std::ifstream file(process.path() / "environ", std::ios::binary);
    for (std::string variable; std::getline(file, variable, '\0');)
      if (variable == entry) {
        found.push_back(pid);
        break;
      }
  }
  return found;
}

Process started(ChildOptions& options) {
  const File log(options.log, File::Mode::append);
  options.process.out = options.process.errors = log.descriptor();
  options.process.told_of_our_end = true;
  options.process.environment.insert_or_assign(kMark, options.mark);
  return Process(options.process);
}

}  // namespace

ChildProcess::ChildProcess(ChildOptions options)
    : mark_(options.mark), program_(options.program), process_(started(options)) {}

bool ChildProcess::has_descendants() const {
  return !process_.killed() && !mark_.empty() && !marked(mark_).empty();
}

bool ChildProcess::has_program() const {
  return !process_.killed() && !mark_.empty() && !program_.empty() &&
         !marked(mark_, program_).empty();
}

void ChildProcess::kill_all() {
  if (process_.killed()) return;
  process_.signal(SIGKILL);
  if (!mark_.empty()) kill_marked(mark_);
  process_.kill();
}

int kill_marked(const std::string& mark) {
  constexpr int kRounds = 200;
  std::vector<pid_t> found = marked(mark);
  const auto count = static_cast<int>(found.size());
  for (int round = 0; round < kRounds && !found.empty(); ++round) {
    for (const pid_t pid : found) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    found = marked(mark);
  }
  return count;
}

}  // namespace concertina
