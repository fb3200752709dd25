#include "io/figure/run_converter.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "io/file.h"

extern char** environ;

namespace concertina {
namespace {

/// What posix_spawn is told: its own process group, so that all of it can be killed, and where its
/// streams go.
class SpawnSettings {
 public:
  explicit SpawnSettings(const std::string& log) {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log.c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes, 0);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

/// The exit status, once it has ended; -1 if it was killed at the limit.
int wait_for(pid_t child, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return -1;
    if (std::chrono::steady_clock::now() > end) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(-child, SIGKILL);  // what it left running
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string end_of(const std::string& log) {
  constexpr std::uint64_t kMostLog = 1 << 20;
  constexpr std::size_t kShown = 300;
  std::string text;
  try {
    text = read_file(log, kMostLog);
  } catch (const Error&) {  // it says nothing, or too much
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  if (text.size() > kShown) text.erase(0, text.size() - kShown);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

ConverterResult run_converter(const std::vector<std::string>& words, const std::string& log,
                              std::chrono::seconds limit) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  SpawnSettings settings(log);
  pid_t child = 0;
  ConverterResult result;
  if (::posix_spawn(&child, words[0].c_str(), &settings.files, &settings.attributes,
                    arguments.data(), environ) != 0)
    return result;
  result.status = wait_for(child, limit);
  result.timed_out = result.status < 0;
  result.errors = end_of(log);
  return result;
}

}  // namespace concertina
