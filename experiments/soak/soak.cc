#include "experiments/soak/soak.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "experiments/launcher/child_process.h"
#include "experiments/launcher/hosts.h"
#include "experiments/launcher/launcher.h"
#include "experiments/machine/signals.h"
#include "experiments/record/run_history.h"
#include "experiments/record/run_lines.h"
#include "experiments/soak/fault_kinds.h"
#include "io/file.h"
#include "io/log_lines.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr double kSoakPollSeconds = 0.01;
constexpr double kLongestWait = 10;
constexpr const char *kClean = "clean", *kDisturbed = "disturbed";

std::string run_of(const SoakOptions& options, const char* name) {
  return options.directory + "/" + name;
}

std::string checkpoints_of(const SoakOptions& options, const char* name) {
  return options.checkpoints.empty() ? run_file(run_of(options, name), kCheckpointFolder)
                                     : options.checkpoints + "/" + name;
}

/// `concertina run` of the run `name`, whose output is appended to NAME.log.
Process start(const SoakOptions& options, const char* name) {
  std::vector<std::string> words = {options.program, "run",
                                    "--ranks",       fmt::format("{}", options.ranks),
                                    "--launcher",    options.launcher};
  if (!options.hosts.empty()) words.insert(words.end(), {"--hosts", options.hosts});
  words.emplace_back("--");
  words.insert(words.end(), options.args.begin(), options.args.end());
  for (const std::string& set : {"run.dir=" + options.directory, fmt::format("run.name={}", name),
                                 "checkpoint.dir=" + checkpoints_of(options, name)})
    words.insert(words.end(), {"--set", set});
  const File log(run_of(options, name) + ".log", File::Mode::append);
  return Process({.words = std::move(words),
                  .out = log.descriptor(),
                  .errors = log.descriptor(),
                  .told_of_our_end = true});
}

SoakRun read_run(const std::string& directory, double seconds) {
  SoakRun run{.seconds = seconds};
  const nlohmann::json result = read_log_json(run_file(directory, kResultFile));
  if (result.is_object()) run.hash = text_in(result, "state_sha256");
  for (const nlohmann::json& line : read_lines(run_file(directory, kMetricsFile))) {
    run.step_seconds += number_in(line, "step_ms") / 1e3;
    run.losses.push_back(line.value("loss", nlohmann::json()).dump());
  }
  return run;
}

void require_not_stopped(Process& process) {
  if (const int signal = stop_signal(); signal != 0) {
    process.signal(SIGUSR1);
    process.wait(60);
    throw Error(Exit::preempted, fmt::format("the soak was stopped by {}", signal_text(signal)),
                "concertina soak", "the same command with another --out");
  }
}

SoakRun run_clean(const SoakOptions& options) {
  const double began = now();
  Process process = start(options, kClean);
  while (!process.exit_code()) {
    require_not_stopped(process);
    std::this_thread::sleep_for(std::chrono::duration<double>(kSoakPollSeconds));
  }
  if (process.exit_code() != 0)
    throw_failure("the run fails without any fault", run_of(options, kClean) + ".log",
                  "`concertina train` with the same arguments");
  return read_run(run_of(options, kClean), now() - began);
}

/// The run that faults are made in, and what is known of them so far.
class Disturbance {
 public:
  explicit Disturbance(const SoakOptions& options)
      : options_(options),
        run_(run_of(options, kDisturbed)),
        random_(options.seed),
        faults_(run_file(run_, kFaultsFile)),
        restarts_(run_file(run_, kRestartsFile)) {}

  SoakResult run() {
    began_ = now();
    process_.emplace(start(options_, kDisturbed));
    plan_next();
    for (;;) {
      follow();
      if (const std::optional<int> code = process_->exit_code(); code && !again(*code)) break;
      if (time() >= next_at_ && time() < options_.seconds &&
          std::ssize(result_.faults) < options_.most)
        inject();
      if (mend_ && time() >= mend_->at) mend();
      require_not_stopped(*process_);
      std::this_thread::sleep_for(std::chrono::duration<double>(kSoakPollSeconds));
    }
    const double seconds = time();
    if (mend_) mend();
    follow();
    // After a finished run's last faults there is no later step; of another they are open.
    if (result_.why.empty()) recovered(seconds);
    result_.disturbed = read_run(run_, seconds);
    kill_marked(run_);
    return std::move(result_);
  }

 private:
  double time() const { return now() - began_; }

  void plan_next() {
    next_at_ = time() + std::exponential_distribution<double>(1 / options_.mean)(random_);
    kind_ = &lookup_entry(fault_kinds(),
                          options_.kinds[std::uniform_int_distribution<std::size_t>(
                              0, options_.kinds.size() - 1)(random_)],
                          "fault", "--faults");
  }

  FaultTarget target() {
    FaultTarget target{.ranks = marked(run_, options_.program, /*everywhere=*/true),
                       .supervisor = killed_ ? 0 : process_->pid(),
                       .checkpoints = checkpoints_of(options_, kDisturbed)};
    const std::vector<pid_t> all = marked(run_);
    for (const pid_t pid : all)
      if (target.launcher == 0 && !std::ranges::binary_search(target.ranks, pid))
        target.launcher = pid;
    return target;
  }

  /// Waits with a fault for something that it can be made in; where that takes too long, it is
  /// another one's turn.
  void inject() {
    const FaultKind& kind = kind_->value;
    std::string host;
    if (!(kind.made_by != nullptr ? outside_fault(kind, host) : kind.make(target(), random_))) {
      if (time() > next_at_ + kLongestWait) plan_next();
      return;
    }
    log::info("{:.1f} s: {} {}", time(), kind_->name, host);
    result_.faults.push_back({.kind = std::string(kind_->name),
                              .at = time(),
                              .harmless = kind.harmless,
                              .reached = reached_,
                              .host = host});
    killed_ = kind.ends_supervisor;
    plan_next();
  }

  /// Makes a fault of the disk, or of one of the launch's hosts but the first, where the supervisor
  /// runs.
  bool outside_fault(const FaultKind& kind, std::string& host) {
    const bool of_disk = kind.maker == FaultMaker::disk;
    if (mend_ || (!of_disk && hosts_.size() < 2)) return false;  // one at a time
    std::vector<std::string> words =
        split_words(of_disk ? options_.disk_faults : options_.host_faults,
                    of_disk ? "--disk-faults" : "--host-faults");
    Mend mend{words, time() + std::uniform_real_distribution<double>(2, 8)(random_)};
    words.emplace_back(kind.made_by);
    mend.words.emplace_back(kind.mended_by);
    if (!of_disk) {
      host = hosts_[1 + std::uniform_int_distribution<std::size_t>(0, hosts_.size() - 2)(random_)];
      words.push_back(host);
      mend.words.push_back(host);
    }
    tell(words);
    mend_ = mend;
    return true;
  }
  static void tell(const std::vector<std::string>& words) {
    constexpr double kLongest = 20;  // seconds
    const ProcessResult result = run_process(words, kLongest);
    if (result.code != 0)
      throw_failure(fmt::format("{} failed: {}", shell_line(words), result.output),
                    "--host-faults or --disk-faults", "a program that does that");
  }
  void mend() {
    log::info("{:.1f} s: {}", time(), shell_line(mend_->words));
    tell(mend_->words);
    mend_.reset();
  }

  /// Whether the supervisor, which has ended with `code`, is started again.
  bool again(int code) {
    if (!std::exchange(killed_, false)) {
      if (code != 0)
        result_.why = fmt::format("`concertina run` ended with {}: {}.log", code, run_);
      return false;
    }
    seen(time());
    process_.emplace(start(options_, kDisturbed));
    return true;
  }

  void seen(double at) {
    for (SoakFault& fault : result_.faults)
      if (std::isnan(fault.seen) && std::isnan(fault.recovered) && fault.at <= at) fault.seen = at;
  }
  void recovered(double at) {
    for (SoakFault& fault : result_.faults)
      if (std::isnan(fault.recovered)) fault.recovered = at;
  }

  void follow() {
    if (!faults_.look().empty()) seen(time());
    for (const nlohmann::json& restart : restarts_.look()) {
      seen(time() - number_in(restart, "ended_s"));
      result_.repeated.push_back(number_in(restart, "reached") - number_in(restart, "from"));
    }
    const double at = time();
    look_at_launches(at);
    const std::int64_t step = last_step_in(run_file(run_, kMetricsFile));
    if (step <= reached_) return;
    reached_ = step;
    for (SoakFault& fault : result_.faults)
      if (std::isnan(fault.recovered) && (fault.seen <= launched_at_ || goes_on(fault)))
        fault.recovered = at;
  }

  /// Whether the launch goes on that the fault was made in. Ranks may do a step after any fault:
  /// the second one counts, or the first of a launch that does not have the host.
  bool goes_on(const SoakFault& fault) const {
    if (!std::isnan(fault.seen)) return false;
    if (!fault.host.empty() && std::ranges::find(hosts_, fault.host) == hosts_.end()) return true;
    return fault.harmless && reached_ > fault.reached + 1;
  }

  /// Takes note of a launch that has begun; its file is read when it is another one.
  void look_at_launches(double at) {
    const std::string path = run_file(run_, kLaunchesFile);
    std::error_code error;
    const fs::file_time_type changed = fs::last_write_time(path, error);
    if (error || changed == launches_changed_) return;
    launches_changed_ = changed;
    const std::vector<nlohmann::json> launches = read_lines(path);
    if (launches.size() > launches_) launched_at_ = at;
    launches_ = launches.size();
    hosts_.clear();
    if (!launches.empty() && launches.back().contains("hosts"))
      for (const nlohmann::json& host : launches.back()["hosts"])
        hosts_.push_back(text_in(host, "host"));
  }

  const SoakOptions& options_;
  const std::string run_;
  std::mt19937_64 random_;
  LineFollower faults_, restarts_;
  std::optional<Process> process_;
  SoakResult result_;
  double began_ = 0, next_at_ = 0, launched_at_ = 0;
  std::int64_t reached_ = 0;
  std::size_t launches_ = 0;
  fs::file_time_type launches_changed_{};
  const Entry<FaultKind>* kind_ = nullptr;
  struct Mend {
    std::vector<std::string> words;
    double at;
  };
  std::optional<Mend> mend_;        // what a host or the disk waits for
  std::vector<std::string> hosts_;  // of the last launch
  bool killed_ = false;             // the supervisor, by us
};

}  // namespace

bool SoakResult::passed() const {
  return why.empty() && !clean.hash.empty() && disturbed.hash == clean.hash &&
         disturbed.losses == clean.losses &&
         std::ranges::all_of(faults,
                             [](const SoakFault& fault) { return std::isfinite(fault.recovered); });
}

Spread spread_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return {std::nan(""), std::nan(""), std::nan(""), 0};
  std::ranges::sort(values);
  // Where values are few, the percentile is the next larger one.
  const auto at = [&](double share) {
    const double last = static_cast<double>(values.size() - 1);
    return values[static_cast<std::size_t>(std::ceil(share * last))];
  };
  return {at(0.5), at(0.99), values.back(), static_cast<int>(values.size())};
}

SoakResult soak(const SoakOptions& options) {
  std::error_code error;
  if (fs::exists(options.directory, error))
    throw_input("there is something already", options.directory, "--out with a new folder");
  make_directories(options.directory);
  log::info("first the run without a fault: {}", run_of(options, kClean));
  const SoakRun clean = run_clean(options);
  log::info("it took {}; now with faults: {}", duration_text(clean.seconds),
            run_of(options, kDisturbed));
  SoakResult result = Disturbance(options).run();
  result.clean = clean;
  atomic_replace(run_file(options.directory, kPageFile), soak_page(options, result));
  atomic_replace(options.directory + "/recoveries.svg", soak_picture(result));
  return result;
}

}  // namespace concertina
