#include "io/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "io/file.h"

namespace concertina {
namespace {

constexpr double kReapSeconds = 10;
constexpr std::size_t kMostOutput = 1 << 20;  // only the last bytes are kept

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> environment_of(const ProcessOptions& options) {
  std::vector<std::string> list;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!options.environment.contains(text.substr(0, text.find('=')))) list.push_back(text);
  }
  for (const auto& [name, value] : options.environment) list.push_back(name + "=" + value);
  return list;
}

/// Everything the child needs, prepared before fork(): no allocation is allowed until exec().
struct Start {
  explicit Start(const ProcessOptions& given)
      : options(given),
        program(find_program(given.words.at(0))),
        words(given.words),
        variables(environment_of(given)),
        word_list(pointers(words)),
        variable_list(pointers(variables)) {
    CPU_ZERO(&cpus);
    for (const int cpu : given.cpus) CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  }

  const ProcessOptions& options;
  std::string program;
  std::vector<std::string> words, variables;
  std::vector<char*> word_list, variable_list;
  cpu_set_t cpus;
};

/// Runs between fork() and exec(), where only async-signal-safe calls are allowed.
[[noreturn]] void become(const Start& start) {
  const ProcessOptions& options = start.options;
  setpgid(0, 0);
  if (options.terminate_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (!options.cpus.empty()) sched_setaffinity(0, sizeof(cpu_set_t), &start.cpus);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(options.in < 0 ? nothing : options.in, STDIN_FILENO);
  dup2(options.out < 0 ? nothing : options.out, STDOUT_FILENO);
  if (options.errors >= 0) dup2(options.errors, STDERR_FILENO);
  execve(start.program.c_str(), start.word_list.data(), start.variable_list.data());
  _exit(127);
}

}  // namespace

Process::Process(const ProcessOptions& options) {
  const Start start(options);
  if (start.program.empty())
    throw_failure("the program does not exist or is not executable", options.words.at(0));
  pid_ = fork();
  if (pid_ < 0) throw_errno("fork", start.program);
  if (pid_ == 0) become(start);
  setpgid(pid_, pid_);  // also in the parent: a signal may be sent before the child runs
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}

std::optional<int> Process::exit_code() {
  if (code_ || pid_ < 0) return code_;
  siginfo_t info{};
  // The process has not been reaped yet, so its process group ID cannot be reused.
  const int result = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (result == 0 && info.si_pid == pid_)
    code_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  else if (result < 0 && errno == ECHILD)
    code_ = 255;
  return code_;
}

std::optional<int> Process::wait(double seconds) {
  for (const double end = now() + seconds; !exit_code() && now() < end;) usleep(5'000);
  return exit_code();
}

void Process::signal(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

bool Process::kill() {
  if (pid_ < 0) return false;
  signal(SIGKILL);
  // A process blocked by storage exits only when the I/O completes.
  if (wait(kReapSeconds)) {
    waitpid(pid_, nullptr, WNOHANG);
  } else {
    log::warn("process {} does not exit: it is blocked by storage (state D in `ps`)", pid_);
    code_ = 128 + SIGKILL;
  }
  pid_ = -1;
  return true;
}

ProcessResult run_process(const std::vector<std::string>& words, double limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe", words.at(0));
  const File from(ends[0], words.at(0));
  File to(ends[1], words.at(0));
  Process process({.words = words, .out = to.descriptor(), .errors = to.descriptor()});
  to = File();
  const double end = now() + limit;
  ProcessResult result;
  // The output ends when the process and everything it left in its group have closed the pipe.
  for (char bytes[1 << 12]; now() < end;) {
    pollfd ready = {from.descriptor(), POLLIN, 0};
    if (poll(&ready, 1, 20) <= 0) {
      if (process.exit_code()) break;
      continue;
    }
    const ssize_t got = read(from.descriptor(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    result.output.append(bytes, static_cast<std::size_t>(got));
    if (result.output.size() > kMostOutput)
      result.output.erase(0, result.output.size() - kMostOutput);
  }
  result.code = process.wait(std::max(0.0, end - now()));
  return result;
}

}  // namespace concertina
