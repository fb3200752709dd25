#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <deque>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "experiments/config/config_toml.h"
#include "experiments/run/signals.h"
#include "experiments/study/launcher.h"
#include "experiments/study/sampler.h"
#include "io/file.h"
#include "io/paths.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPatienceSeconds = 300;  // for an answer
constexpr double kSilenceSeconds = 5;     // until somebody is told that there is none

/// The program at the other end: lines to its stdin, lines from its stdout.
class Partner {
 public:
  explicit Partner(const std::string& command) : command_(command) {
    std::vector<std::string> words = split_words(command, "search.command");
    const std::string program = find_program(words[0]);
    if (program.empty())
      throw_input(fmt::format("the sampler '{}' is not there, or cannot be executed", words[0]),
                  "search.command", "a program on PATH, or its path");
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw_errno("pipe", command);
    to_ = File(to[1], "the sampler's input");
    from_ = File(from[0], "the sampler's output");
    const File child_in(to[0], ""), child_out(from[1], "");
    start(program, words, child_in.descriptor(), child_out.descriptor());
  }
  ~Partner() {
    to_ = File();  // the end of its input: a sampler ends by itself
    bool ended = false;
    for (int i = 0; i < 100 && !ended; ++i) {
      ended = waitpid(pid_, nullptr, WNOHANG) != 0;
      if (!ended) usleep(20'000);
    }
    ::kill(-pid_, SIGKILL);  // and all that it has started
    if (!ended) waitpid(pid_, nullptr, 0);
  }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  void send(const Json& json) {
    const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    try {
      to_.write(line);
    } catch (const Error&) {
      fail("it takes no more input");
    }
  }
  /// Nothing where a signal asks the study to end before there is an answer.
  std::optional<Json> receive() {
    const double asked = now();
    bool told = false;
    while (buffer_.find('\n') == std::string::npos) {
      if (stop_waits()) return std::nullopt;
      if (now() > asked + kPatienceSeconds)
        fail(fmt::format("it has not answered for {:g} s", kPatienceSeconds));
      if (!told && now() > asked + kSilenceSeconds) {
        log::info("waiting for an answer of the sampler, {:g} s at most", kPatienceSeconds);
        told = true;
      }
      read_more();
    }
    const std::string line = buffer_.substr(0, buffer_.find('\n'));
    buffer_.erase(0, line.size() + 1);
    Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) fail(fmt::format("it said '{}', which is no JSON object", line));
    return json;
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw_failure(fmt::format("the sampler failed: {}", why), command_,
                  "what it printed above; ended trials are kept, `study run` goes on with them");
  }

 private:
  void start(const std::string& program, std::vector<std::string>& words, int in, int out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
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
  void read_more() {
    pollfd ready{from_.descriptor(), POLLIN, 0};
    if (poll(&ready, 1, 100) <= 0) return;
    char bytes[4096];
    const ssize_t got = read(from_.descriptor(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) fail("it ended without an answer");
    buffer_.append(bytes, static_cast<std::size_t>(got));
  }

  std::string command_, buffer_;
  File to_, from_;
  pid_t pid_ = -1;
};

class CommandSampler : public Sampler {
 public:
  CommandSampler(const StudySpec& spec, const std::map<int, StoredTrial>& before)
      : search_(spec.search), partner_(spec.search.command) {
    partner_.send({{"study",
                    {{"name", spec.name},
                     {"metric", search_.metric},
                     {"goal", search_.minimise ? "min" : "max"},
                     {"trials", search_.trials}}}});
    for (const auto& [number, trial] : before) {
      last_ = std::max(last_, number);
      if (trial.record.state == TrialState::open)
        again_.push_back({number, trial.record.settings});
      else
        tell(trial);
    }
  }

  std::optional<TrialTask> next(bool) override {
    if (!again_.empty()) {
      const Trial trial = again_.front();
      again_.pop_front();
      return TrialTask{trial};
    }
    if (done_ || (search_.trials > 0 && last_ >= search_.trials)) return std::nullopt;
    partner_.send({{"ask", {{"trial", last_ + 1}}}});
    const std::optional<Json> answer = partner_.receive();
    if (!answer) return std::nullopt;
    if (answer->contains("done")) {
      done_ = true;
      return std::nullopt;
    }
    return TrialTask{{++last_, settings_of(*answer)}};
  }

  void tell(const StoredTrial& trial) override {
    const Cell metric = cell_of(trial.record, search_.metric);
    Json settings = Json::object();
    for (const auto& [key, value] : trial.record.settings) settings[key] = json_of(value);
    const auto* number = std::get_if<double>(&metric);
    partner_.send({{"tell",
                    {{"trial", trial.record.number},
                     {"state", name_of(trial.record.state)},
                     {"metric", number != nullptr ? Json(*number) : Json(nullptr)},
                     {"set", settings}}}});
  }

  std::optional<int> left() const override {
    if (done_) return static_cast<int>(again_.size());
    if (search_.trials == 0) return std::nullopt;
    return search_.trials - last_ + static_cast<int>(again_.size());
  }

 private:
  static Json json_of(const std::string& value) {
    const Json json = Json::parse(value, nullptr, false);
    return json.is_number() ? json : Json(value);
  }

  Settings settings_of(const Json& answer) const {
    if (!answer.contains("set") || !answer["set"].is_object())
      partner_.fail(
          fmt::format("it said {} where {{\"set\": {{KEY: VALUE, ...}}}} or {{\"done\": "
                      "true}} was due",
                      answer.dump()));
    Settings settings;
    for (const auto& [key, value] : answer["set"].items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      if (key != kRanksKey) {
        RunConfig scratch;
        set_config(key + "=" + text, scratch);  // refuses what is no key or no value of it
      }
      settings.emplace_back(key, text);
    }
    return settings;
  }

  const SearchSection search_;
  Partner partner_;
  std::deque<Trial> again_;  // asked for before, and not ended
  int last_ = 0;             // number of the trial that was asked for last
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Sampler> command_sampler(const StudySpec& spec,
                                         const std::map<int, StoredTrial>& before) {
  std::signal(SIGPIPE, SIG_IGN);  // a sampler that has gone is an error of write()
  return std::make_unique<CommandSampler>(spec, before);
}

}  // namespace concertina
