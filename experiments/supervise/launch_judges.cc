#include "experiments/supervise/launch_judges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text/number_text.h"

namespace concertina {

Verdict Absence::look(const ProcessFacts& facts) {
  if (facts.ranks == 0) return std::nullopt;
  if (!fewer_ && facts.started > 0)
    count_ = facts.started;
  else if (!fewer_ || count_ == 0)
    count_ = std::max(count_, facts.ranks);
  const bool complete = facts.ranks >= count_;
  if (complete) patience_ = kAloneSeconds;
  if (complete || there_at_ == 0) there_at_ = facts.at;
  if (facts.at <= there_at_ + patience_) return std::nullopt;
  return LaunchEnd{FaultKind::died, "a rank on this host exited, but the others were not stopped",
                   facts.at};
}

Verdict StoppedRanks::look(const ProcessFacts& facts) {
  if (facts.ranks > 0) stopped_.look(facts.stopped > 0, facts.at);
  const bool all = facts.stopped == facts.ranks;
  if (!stopped_.exceeds(all ? kStopLimit : kOneLimit)) return std::nullopt;
  return LaunchEnd{FaultKind::stopped,
                   all ? "all ranks on this host have been stopped by a signal"
                       : "a rank on this host has been stopped by a signal",
                   facts.at};
}

Verdict Launching::look(const ProcessFacts& facts) {
  if (facts.ranks > 0) last_ = facts.at;
  std::string why;
  if (last_ == 0 && facts.at > launched_ + kStartSeconds && !facts.begun)
    why = fmt::format("no rank started training within {:g} s", kStartSeconds);
  if (last_ > 0 && facts.at > last_ + kReturnSeconds)
    why = "all ranks on this host exited, but the launcher did not return";
  return why.empty() ? std::nullopt : Verdict({FaultKind::launcher, why, facts.at});
}

bool Launching::is_stopped(const ProcessFacts& facts) {
  stopped_.look(facts.launcher_stopped, facts.at);
  if (!stopped_.exceeds({kStopLimit.seconds, 1})) return false;
  stopped_ = {.free_at = facts.at};
  return true;
}

bool Launching::asks_hosts(const ProcessFacts& facts) {
  if (facts.begun || facts.at < launched_ + question_after_) return false;
  question_after_ *= 2;
  return true;
}

bool is_refused(const LaunchEnd& end) {
  return end.kind == FaultKind::refused ||
         (end.kind == FaultKind::ended && end.code == static_cast<int>(Exit::bad_input));
}

std::optional<RestartPolicy::Stop> RestartPolicy::after(const EndedLaunch& launch) {
  const LaunchEnd& end = launch.end;
  in_vain_ = launch.newest > newest_ || launch.older ? 0 : in_vain_ + 1;
  newest_ = launch.newest;
  // Once a launch has begun, a later one whose ranks do not start may have hit a transient fault.
  const bool never_began = end.kind == FaultKind::ended && end.code < 128 && !launch.any_begun;
  const bool may_repeat = end.kind == FaultKind::failed || never_began;
  const std::string before = std::exchange(last_words_, may_repeat ? end.why + launch.hosts : "");
  const bool again = in_vain_ > 0 && !before.empty() && before == last_words_;
  if (is_refused(end) && !launch.older)
    return Stop{Exit::bad_input, "the launch was refused and would be refused again"};
  if (again && never_began)
    return Stop{Exit::failure,
                "2 launches ended in the same way before their ranks started; see the "
                "output of the launcher"};
  if (end.kind == FaultKind::diverged || again)
    return Stop{Exit::failure, "rerunning the command would fail again at the same place"};
  if (max_restarts_ && restarts_ >= *max_restarts_)
    return Stop{Exit::failure,
                fmt::format("reached the limit of {} restarts (--max-restarts)", *max_restarts_)};
  if (in_vain_ >= kMostInVain)
    return Stop{Exit::failure,
                fmt::format("{} in a row ended before a new checkpoint (checkpoint.every = {})",
                            counted(in_vain_, "launch"), every_)};
  ++restarts_;
  return std::nullopt;
}

double RestartPolicy::pause() const {
  return in_vain_ == 0 ? 0 : std::min(kLongestPause, 0.25 * std::exp2(in_vain_ - 1));
}

}  // namespace concertina
