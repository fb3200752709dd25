#include "experiments/study/sampler_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "experiments/machine/error_text.h"
#include "experiments/machine/signals.h"
#include "experiments/study/launcher.h"
#include "io/paths.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPatienceSeconds = 300;  // for an answer
constexpr double kSilenceSeconds = 5;     // until somebody is told that there is none
constexpr std::size_t kMostLineBytes = 1 << 20;

/// As a person may read it at a terminal: its beginning.
std::string shown(const std::string& line) {
  constexpr std::size_t kMost = 120;
  const std::string text = terminal_text(line.substr(0, kMost));
  return line.size() > kMost ? fmt::format("{}... ({} bytes)", text, line.size()) : text;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

}  // namespace

SamplerProcess::SamplerProcess(const std::string& command) : command_(command) {
  std::vector<std::string> words = split_words(command, "search.command");
  const std::string program = find_program(words[0]);
  if (program.empty())
    throw_input(fmt::format("the sampler '{}' is not there, or cannot be executed", words[0]),
                "search.command", "a program on PATH, or its path");
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw_errno("pipe", command);
  to_ = File(to[1], "the sampler's input");
  from_ = File(from[0], "the sampler's output");
  for (const int end : {to[1], from[0]}) fcntl(end, F_SETFL, O_NONBLOCK);
  const File child_in(to[0], ""), child_out(from[1], "");
  std::signal(SIGPIPE, SIG_IGN);  // a sampler that has gone is an error of write()
  start(program, words, child_in.descriptor(), child_out.descriptor());
}

SamplerProcess::~SamplerProcess() {
  to_ = File();  // the end of its input: a sampler ends by itself
  for (int i = 0; i < 100 && !has_ended(); ++i) usleep(20'000);
  ::kill(-pid_, SIGKILL);  // and all that it has started
  if (!status_) waitpid(pid_, nullptr, 0);
}

void SamplerProcess::start(const std::string& program, std::vector<std::string>& words, int in,
                           int out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  const int error =
      posix_spawn(&pid_, program.c_str(), &actions, &attributes, list.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    errno = error;
    throw_errno("posix_spawn", program);
  }
}

void SamplerProcess::send(const Json& json) {
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const double began = now();
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = write(to_.descriptor(), line.data() + sent, line.size() - sent);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) fail_ended("it takes no more input");
    if (stop_waits()) return;  // the study ends: nobody asks it again
    if (now() > began + kPatienceSeconds)
      fail(fmt::format("it has not read what it was told for {:g} s", kPatienceSeconds));
    wait(true);
  }
}

std::optional<Json> SamplerProcess::ask(const Json& question) {
  wait(true);  // takes in what it has said by now
  require_silence();
  send(question);
  const std::optional<std::string> answer = line();
  if (!answer) return std::nullopt;
  Json json = Json::parse(*answer, nullptr, false);
  if (!json.is_object()) fail(fmt::format("it said '{}', which is no JSON object", shown(*answer)));
  return json;
}

std::optional<std::string> SamplerProcess::line() {
  const double asked = now();
  bool told = false;
  while (said_.find('\n') == std::string::npos) {
    if (stop_waits()) return std::nullopt;
    const std::string so_far =
        is_blank(said_) ? "" : fmt::format(", but for '{}' without a line's end", shown(said_));
    if (now() > asked + kPatienceSeconds)
      fail(fmt::format("it has not answered for {:g} s{}", kPatienceSeconds, so_far));
    if (!told && now() > asked + kSilenceSeconds) {
      log::info("waiting for an answer of the sampler, {:g} s at most{}", kPatienceSeconds, so_far);
      told = true;
    }
    wait(false);
  }
  const std::string line = said_.substr(0, said_.find('\n'));
  said_.erase(0, line.size() + 1);
  return line;
}

void SamplerProcess::wait(bool to_write) {
  pollfd ends[] = {{from_.descriptor(), POLLIN, 0}, {to_.descriptor(), POLLOUT, 0}};
  if (poll(ends, to_write ? 2 : 1, 100) <= 0) {
    // A process that it has left may hold its output open.
    if (has_ended()) fail_ended("it ended without an answer");
    return;
  }
  if (ends[0].revents == 0) return;
  char bytes[1 << 16];
  const ssize_t got = read(from_.descriptor(), bytes, sizeof bytes);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) fail_ended("it ended without an answer");
  said_.append(bytes, static_cast<std::size_t>(got));
  if (said_.size() > kMostLineBytes)
    fail(fmt::format("it said more than {} bytes, where a line was due: '{}'", kMostLineBytes,
                     shown(said_)));
}

void SamplerProcess::require_silence() {
  if (!is_blank(said_))
    fail(fmt::format("it said '{}' before it was asked: an ask has one line as its answer",
                     shown(said_.substr(0, said_.find('\n')))));
  said_.clear();
}

bool SamplerProcess::has_ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

void SamplerProcess::fail_ended(const std::string& what) {
  for (int i = 0; i < 20 && !has_ended(); ++i) usleep(10'000);
  if (!status_) fail(what + ": it closed its end, and still runs");
  fail(WIFSIGNALED(*status_) ? fmt::format("{} (killed by signal {})", what, WTERMSIG(*status_))
                             : fmt::format("{} (exit code {})", what, WEXITSTATUS(*status_)));
}

void SamplerProcess::fail(const std::string& why) const {
  throw_failure(fmt::format("the sampler failed: {}", why), command_,
                "what it printed above; ended trials are kept, `study run` goes on with them");
}

}  // namespace concertina
