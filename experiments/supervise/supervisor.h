// Starts a training run again until it is finished: `concertina run`.
// Invariants: one launch at a time, and none of its processes on this host outlives it; bad input
// and divergence are never tried again, nor what failed twice with the same words from the same
// state; a damaged checkpoint, which is kept under another name, is an exception; the run is
// finished when its result.json says so, whatever a launcher returns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/launcher/child_process.h"
#include "experiments/machine/fault_log.h"
#include "experiments/supervise/host_pool.h"

namespace concertina {

struct SuperviseOptions {
  std::string launcher;           // a template, as of launcher.h
  std::string program;            // what {program} stands for
  std::vector<std::string> args;  // of the program: train ...
  int ranks = 1;
  std::vector<Host> hosts{};          // that the launcher's {hosts} are taken from; none: this one
  std::optional<int> max_restarts{};  // absent: as long as the run gets on
};

struct SuperviseSummary {
  int code = 0;        // the exit code of `concertina run`
  int stopped_by = 0;  // a signal to this process
  int restarts = 0;
  int in_place = 0;                      // faults after which the launch went on by itself
  std::int64_t steps_repeated = 0;       // trained, and then lost with a launch
  double seconds = 0, down_seconds = 0;  // in all, and from faults seen to launches started again
  std::string why{};                     // it ended before the run did; empty: the run is finished
};

class Supervisor {
 public:
  /// `config`: as the launches read it from `options.args`.
  Supervisor(SuperviseOptions options, const RunConfig& config);

  /// Launches until the run is finished, this process is told to stop, or it makes no sense to go
  /// on. The process' stop signals are held (signals.h). Throws Error{bad_input} if the run
  /// directory cannot be used, or another process supervises the run.
  SuperviseSummary run();
  Supervisor(const Supervisor&) = delete;  // its pool asks by way of it
  Supervisor& operator=(const Supervisor&) = delete;

 private:
  /// How a launch ended.
  struct End {
    int code = 0;  // of the launcher
    FaultKind kind = FaultKind::ended;
    std::string why{};    // as of Restart
    double fault_at = 0;  // when it was seen, by now()
  };

  /// What was seen of the ranks of this host, by now().
  struct RanksSeen {
    double launched = 0, launcher_ran = 0;    // when; and when the launcher was last not stopped
    std::uintmax_t launches = 0;              // launch_bytes() before
    double next_look = 0, last = 0, ran = 0;  // 0: never; ran: all of them
    double question_after = 3;  // from the start, to the hosts of a launch that has not begun
    std::size_t count = 0;      // that should be there
    bool fewer = false;         // than MPI started, since some were lost in place
    double all_there = 0;       // when all were last, at first when one was
    bool complete = false;      // all were, once
    int stopped_looks = 0;      // in a row, some of them stopped
  };

  /// Decides on the hosts and ranks of the next launch; false, with a reason in the summary: there
  /// are none that the run fits.
  bool muster();
  std::vector<Host> hosts_there();
  ChildOptions child() const;
  ProcessOptions question(std::vector<Host> hosts, const char* task) const;
  End watch(ChildProcess& child);
  /// What of the launch's `lines` ends it, if anything does. `open`: a fault after which it may go
  /// on by itself, and has not yet.
  std::optional<End> judge(const std::vector<nlohmann::json>& lines, std::optional<End>& open,
                           RanksSeen& ranks);
  void record_in_place(const End& fault);
  std::optional<End> look_at_ranks(ChildProcess& child, RanksSeen& ranks);
  std::optional<End> look_at_hosts(RanksSeen& ranks, double at);
  static void look_at_launcher(const ChildProcess& child, RanksSeen& ranks, double at);
  std::uintmax_t launch_bytes() const;
  void tell_to_stop(const ChildProcess& child);
  static void end_all(ChildProcess& child);
  /// The step that the next launch goes on from, as far as this host knows: of the newest
  /// checkpoint, or part of a snapshot.
  std::int64_t newest_state() const;
  bool put_damaged_aside() const;
  /// Whether another launch makes sense after `end`; if not, why not is in the summary.
  bool goes_on(const End& end);
  double pause() const;
  bool stopped();
  void forget_former_runs() const;
  bool needs_snapshots() const;
  void forget_snapshots();
  Restart restart_of(const End& fault, std::int64_t from, bool in_place);
  void restart_after(const End& end);
  void run_launches();

  const SuperviseOptions options_;
  const RunConfig& config_;
  const std::string directory_, checkpoints_;
  HostPool pool_;
  std::string hosts_{};             // of the launch; empty: this one
  int ranks_ = 1;                   // of the launch
  std::vector<std::string> fit_{};  // arguments that make the config fit them
  SuperviseSummary summary_;
  double told_at_ = 0;                  // when the launch was told of it
  bool launched_ = false;               // once at least
  std::int64_t newest_ = 0;             // the newest commit that was seen
  int in_vain_ = 0;                     // launches in a row that committed nothing
  std::uintmax_t launches_before_ = 0;  // launch_bytes() before the first launch
  std::string last_words_{};  // and hosts of the launch before, if the next one may fail alike
};

}  // namespace concertina
