#include "experiments/study/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "core/error.h"
#include "io/file.h"
#include "io/paths.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "CONCERTINA_TRIAL";

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> environment_of(const ChildOptions& options) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    variables.insert_or_assign(text.substr(0, text.find('=')),
                               text.substr(std::min(text.size(), text.find('=') + 1)));
  }
  for (const auto& [name, value] : options.environment) variables.insert_or_assign(name, value);
  variables.insert_or_assign(kMark, options.mark);
  std::vector<std::string> list;
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

cpu_set_t cpu_set_of(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  return set;
}

/// Between fork() and exec(): calls that are safe there, alone.
[[noreturn]] void become(const std::string& program, char* const* words, char* const* variables,
                         const cpu_set_t* cpus, int log) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (cpus != nullptr) sched_setaffinity(0, sizeof(cpu_set_t), cpus);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execve(program.c_str(), words, variables);
  _exit(127);
}

std::vector<pid_t> marked(const std::string& mark) {
  const std::string entry = std::string(kMark) + "=" + mark;
  std::vector<pid_t> found;
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", error)) {
    const std::string name = process.path().filename().string();
    pid_t pid = 0;
    const auto [parsed, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc{} || parsed != name.data() + name.size() || pid == getpid()) continue;
    std::ifstream file(process.path() / "environ", std::ios::binary);
    for (std::string variable; std::getline(file, variable, '\0');)
      if (variable == entry) {
        found.push_back(pid);
        break;
      }
  }
  return found;
}

}  // namespace

ChildProcess::ChildProcess(const ChildOptions& options) : mark_(options.mark) {
  const std::string program = find_program(options.words.at(0));
  if (program.empty())
    throw_failure("the program is not there, or cannot be executed", options.words.at(0));
  // All memory is taken before the fork.
  std::vector<std::string> words = options.words, variables = environment_of(options);
  const std::vector<char*> word_list = pointers(words), variable_list = pointers(variables);
  const cpu_set_t cpus = cpu_set_of(options.cpus);
  const File log(options.log, File::Mode::append);
  pid_ = fork();
  if (pid_ < 0) throw_errno("fork", program);
  if (pid_ == 0)
    become(program, word_list.data(), variable_list.data(), options.cpus.empty() ? nullptr : &cpus,
           log.descriptor());
  setpgid(pid_, pid_);  // here as well: a signal may come before the child has run
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), mark_(std::move(other.mark_)), code_(other.code_) {}

ChildProcess::~ChildProcess() {
  kill_all();
}

std::optional<int> ChildProcess::exit_code() {
  if (code_ || pid_ < 0) return code_;
  siginfo_t info{};
  // It is not reaped yet: nobody else can get the ID of its group.
  const int result = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (result == 0 && info.si_pid == pid_)
    code_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  else if (result < 0 && errno == ECHILD)
    code_ = 255;
  return code_;
}

bool ChildProcess::has_descendants() const {
  return pid_ > 0 && !mark_.empty() && !marked(mark_).empty();
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

void ChildProcess::kill_all() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  if (!mark_.empty()) kill_marked(mark_);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (!code_) code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  pid_ = -1;
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
