#include "experiments/study/sampler_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
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

constexpr double kPatienceSeconds = 300;  // for an answer
constexpr double kSilenceSeconds = 5;     // until somebody is told that there is none
constexpr std::size_t kMostLineBytes = 1 << 20;

/// As a person may read it at a terminal: its beginning.
std::string shown(const std::string& line) {
  constexpr std::size_t kMost = 120;
  const std::string text = terminal_text(line.substr(0, kMost));
  return line.size() > kMost ? fmt::format("{}... ({} bytes)", text, line.size()) : text;
}

}  // namespace

SamplerProcess::SamplerProcess(const std::string& command) : command_(command) {
  const std::vector<std::string> words = split_words(command, "search.command");
  if (find_program(words[0]).empty())
    throw_input(fmt::format("the sampler '{}' is not there, or cannot be executed", words[0]),
                "search.command", "a program on PATH, or its path");
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw_errno("pipe", command);
  to_ = File(to[1], "the sampler's input");
  from_ = File(from[0], "the sampler's output");
  const File child_in(to[0], ""), child_out(from[1], "");
  std::signal(SIGPIPE, SIG_IGN);  // a sampler that has gone is an error of write()
  process_.emplace(
      ProcessOptions{.words = words, .in = child_in.descriptor(), .out = child_out.descriptor()});
}

SamplerProcess::~SamplerProcess() {
  to_ = File();  // the end of its input: a sampler ends by itself
  process_->wait(2);
}

bool SamplerProcess::wait(const File& file, short events, double began) {
  bool told = false;
  for (pollfd end = {file.descriptor(), events, 0}; poll(&end, 1, 100) <= 0;) {
    if (stop_waits()) return false;
    if (process_->exit_code()) fail_ended();  // a process that it has left may hold its output open
    if (now() > began + kPatienceSeconds)
      fail(fmt::format("it has not {} for {:g} s", events == POLLIN ? "answered" : "read",
                       kPatienceSeconds));
    if (!told && now() > began + kSilenceSeconds)
      log::info("waiting for the sampler, {:g} s at most", kPatienceSeconds);
    told = told || now() > began + kSilenceSeconds;
  }
  return true;
}

void SamplerProcess::send(const nlohmann::ordered_json& json) {
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  const std::string line = json.dump(-1, ' ', false, replace) + "\n";
  const double began = now();
  for (std::size_t sent = 0; sent < line.size();) {
    if (!wait(to_, POLLOUT, began)) return;  // the study ends: nobody asks it again
    // A pipe that poll() calls writable takes so many bytes at once.
    const ssize_t count = write(to_.descriptor(), line.data() + sent,
                                std::min<std::size_t>(line.size() - sent, PIPE_BUF));
    if (count < 0 && errno != EINTR) fail_ended();
    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

std::optional<nlohmann::ordered_json> SamplerProcess::ask(const nlohmann::ordered_json& question) {
  send(question);
  const std::optional<std::string> answer = line();
  if (!answer) return std::nullopt;
  auto json = nlohmann::ordered_json::parse(*answer, nullptr, false);
  if (!json.is_object()) fail(fmt::format("it said '{}', which is no JSON object", shown(*answer)));
  return json;
}

std::optional<std::string> SamplerProcess::line() {
  const double began = now();
  while (said_.find('\n') == std::string::npos) {
    if (!wait(from_, POLLIN, began)) return std::nullopt;
    char bytes[1 << 16];
    const ssize_t got = read(from_.descriptor(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_ended();
    said_.append(bytes, static_cast<std::size_t>(got));
    if (said_.size() > kMostLineBytes)
      fail(fmt::format("it said more than {} bytes, where a line was due: '{}'", kMostLineBytes,
                       shown(said_)));
  }
  const std::string line = said_.substr(0, said_.find('\n'));
  said_.erase(0, line.size() + 1);
  return line;
}

void SamplerProcess::fail_ended() {
  const std::optional<int> code = process_->wait(0.2);
  fail(code ? fmt::format("it ended without an answer (exit code {})", *code)
            : "it closed its end, and still runs");
}

void SamplerProcess::fail(const std::string& why) const {
  throw_failure(fmt::format("the sampler failed: {}", why), command_,
                "what it printed above; ended trials are kept, `study run` goes on with them");
}

}  // namespace concertina
