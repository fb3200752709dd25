// An external program proposes settings as lines of JSON (protocol: see the user's guide).
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "experiments/config/config_toml.h"
#include "experiments/launcher/launcher.h"
#include "experiments/machine/exit.h"
#include "experiments/machine/signals.h"
#include "experiments/study/sampler.h"
#include "io/file.h"
#include "io/process.h"
#include "io/strict_json.h"

namespace concertina::samplers {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kNoBound = kMostTrials;

constexpr double kPatienceSeconds = 300;  // for an answer

/// The beginning of a line, printable on a terminal.
std::string shown(const std::string& line) {
  constexpr std::size_t kMost = 120;
  const std::string text = terminal_text(line.substr(0, kMost));
  return line.size() > kMost ? fmt::format("{}... ({} bytes)", text, line.size()) : text;
}

/// The external program: sends lines of JSON to its stdin and reads them from its stdout. An answer
/// must arrive within kPatienceSeconds, unless a signal stops the study.
class SamplerProcess {
 public:
  /// Throws Error{bad_input} if the program does not exist.
  explicit SamplerProcess(const std::string& command) : command_(command) {
    const std::vector<std::string> words = split_words(command, "search.command");
    if (find_program(words[0]).empty())
      throw_input(fmt::format("the sampler '{}' does not exist or cannot be executed", words[0]),
                  "search.command", "a program on PATH, or its path");
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw_errno("pipe", command);
    to_ = File(to[1], "the sampler's input");
    from_ = File(from[0], "the sampler's output");
    const File child_in(to[0], ""), child_out(from[1], "");
    std::signal(SIGPIPE, SIG_IGN);  // writing to an exited sampler is an error from write()
    process_.emplace(
        ProcessOptions{.words = words, .in = child_in.descriptor(), .out = child_out.descriptor()});
  }

  /// Closes the program's input, waits two seconds, then kills the program and its children.
  ~SamplerProcess() {
    to_ = File();  // a sampler exits at the end of its input
    process_->wait(2);
  }

  void send(const Json& json) {
    try {
      to_.write(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    } catch (const Error&) {
      fail_ended();
    }
  }

  /// Sends `question` and returns the program's answer, an object, or nothing if a signal stops the
  /// study first. Throws Error{failure} for any other answer.
  std::optional<Json> ask(const Json& question) {
    send(question);
    const double began = now();
    while (received_.find('\n') == std::string::npos) {
      pollfd end = {from_.descriptor(), POLLIN, 0};
      if (poll(&end, 1, 100) > 0) {
        char bytes[1 << 16];
        const ssize_t got = read(from_.descriptor(), bytes, sizeof bytes);
        if (got <= 0) fail_ended();
        received_.append(bytes, static_cast<std::size_t>(got));
      } else if (stop_waits()) {
        return std::nullopt;
      } else if (process_->exit_code()) {  // a process that it started may keep its output open
        fail_ended();
      } else if (now() > began + kPatienceSeconds) {
        fail(fmt::format("no answer within {:g} s", kPatienceSeconds));
      }
    }
    const std::string line = received_.substr(0, received_.find('\n'));
    received_.erase(0, line.size() + 1);
    Json json = parse_json<Json>(line);
    if (!json.is_object())
      fail(fmt::format("it sent '{}', which is not a JSON object", shown(line)));
    return json;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw_failure(
        fmt::format("the sampler failed: {}", why), command_,
        "see its output above; finished trials are kept, and `study run` continues after them");
  }

 private:
  [[noreturn]] void fail_ended() {
    const std::optional<int> code = process_->wait(0.2);
    fail(code ? fmt::format("it exited without an answer (exit code {})", *code)
              : "it closed its output but is still running");
  }

  std::string command_, received_;  // received_: not processed yet
  File to_, from_;
  std::optional<Process> process_;
};

class CommandSampler : public Sampler {
 public:
  CommandSampler(const StudySpec& spec, const std::map<int, TrialRecord>& before)
      : search_(spec.search),
        most_(option<std::int64_t>(search_.options, "trials")),
        process_(option<std::string>(search_.options, "command")) {
    process_.send({{"study",
                    {{"name", spec.name},
                     {"metric", search_.metric},
                     {"goal", search_.minimise ? "min" : "max"},
                     {"trials", most_ == kNoBound ? 0 : most_}}}});
    for (const auto& [number, trial] : before) {
      last_ = std::max(last_, number);
      if (trial.state == TrialState::open)
        retries_.push_back({number, trial.settings});
      else
        tell(trial);
    }
  }

  std::optional<TrialTask> next(bool) override {
    if (!retries_.empty()) {
      const Trial trial = retries_.front();
      retries_.pop_front();
      return TrialTask{trial};
    }
    if (done_ || last_ >= most_) return std::nullopt;
    const std::optional<Json> answer = process_.ask({{"ask", {{"trial", last_ + 1}}}});
    if (!answer) return std::nullopt;
    done_ = *answer == Json{{"done", true}};
    if (done_) return std::nullopt;
    return TrialTask{{++last_, settings_of(*answer)}};
  }

  void tell(const TrialRecord& trial) override {
    const Cell metric = cell_of(trial, search_.metric);
    if (trial.state == TrialState::done && !std::holds_alternative<double>(metric))
      refuse_metric(trial);
    Json settings = Json::object();
    for (const auto& [key, value] : trial.settings) settings[key] = json_of(value);
    Json json = {{"trial", trial.number},
                 {"state", name_of(trial.state)},
                 {"metric", nullptr},
                 {"set", settings}};
    if (const auto* value = std::get_if<double>(&metric)) json["metric"] = *value;
    process_.send({{"tell", json}});
  }

  std::optional<int> left() const override {
    if (done_) return static_cast<int>(retries_.size());
    if (most_ == kNoBound) return std::nullopt;
    return static_cast<int>(most_) - last_ + static_cast<int>(retries_.size());
  }

 private:
  static Json json_of(const std::string& value) {
    const Json json = parse_json<Json>(value);
    return json.is_number() ? json : Json(value);
  }

  /// A sampler without the metric that it requested would search blindly.
  [[noreturn]] void refuse_metric(const TrialRecord& record) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : record.metrics)
      if (name.find('.') == std::string::npos) names.push_back(name);
    throw_failure(fmt::format("trial {} is done, but its result contains no metric {}",
                              record.number, search_.metric),
                  "search.metric",
                  fmt::format("one of: {}, in a study with another name", fmt::join(names, ", ")));
  }

  Settings settings_of(const Json& answer) const {
    if (answer.size() != 1 || !answer.contains("set") || !answer["set"].is_object() ||
        answer["set"].empty())
      process_.fail(
          fmt::format("expected {{\"set\": {{KEY: VALUE, ...}}}} or "
                      "{{\"done\": true}}, got {}",
                      answer.dump()));
    Settings settings;
    for (const auto& [key, value] : answer["set"].items())
      settings.emplace_back(key, setting(key, value));
    return settings;
  }

  std::string setting(const std::string& key, const Json& value) const {
    const std::string place = fmt::format("the sampler's answer for trial {}", last_);
    if (key == kRanksKey) {
      if (!value.is_number_integer() || value < 1 || value > kMostTrialRanks)
        throw_input(fmt::format("ranks = {}", value.dump()), place,
                    fmt::format("an integer from 1 to {}", kMostTrialRanks));
      return value.dump();
    }
    if (is_studys_own(key))
      throw_input(fmt::format("{} is set by the study", key), place,
                  "remove it: each trial has a directory in the study's folder");
    if (value.is_null() || value.is_object())
      throw_input(fmt::format("{} = {} is not a valid assignment", key, value.dump()), place,
                  "{\"set\": {\"optimizer.lr\": 0.003}}: each key with its table's name");
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    RunConfig scratch;
    set_key(key, text, place, scratch);  // throws for unknown keys and invalid values
    return text;
  }

  const SearchSection search_;
  const std::int64_t most_;
  SamplerProcess process_;
  std::deque<Trial> retries_;  // requested before, but not finished
  int last_ = 0;               // number of the trial that was requested last
  bool done_ = false;
};

}  // namespace

SearchMethod sampler() {
  return {.make = [](const StudySpec& spec,
                     const std::map<int, TrialRecord>& before) -> std::unique_ptr<Sampler> {
            return std::make_unique<CommandSampler>(spec, before);
          },
          .options = {{"command", std::string(), "program that chooses settings"},
                      {"trials", std::int64_t{kNoBound},
                       "maximum number of trials to request (default: unlimited)", 1, kMostTrials}},
          .program = "command"};
}

}  // namespace concertina::samplers
