// The hosts of a supervised run: tracks which of them respond and selects those for the next
// launch. Invariants: a host that does not respond in time is not used until it does; hosts are
// used in the given order, so that the last ones are spares. Cost: if all n hosts respond, one
// round of min(n, kDefaultLaunches) launches; a lost host adds a round per factor of 8 in n /
// kDefaultLaunches.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "experiments/launcher/hosts.h"
#include "io/process.h"

namespace concertina {

class HostPool {
 public:
  /// Timeouts for hosts, which are all queried at the same time: a fixed time or, if longer, a
  /// multiple of the time until the first response, since machines may be loaded. If none responds,
  /// the longest time.
  static constexpr double kAnswerSeconds = 2, kTimesFirst = 4, kLongestSeconds = 20;
  static constexpr std::size_t kDefaultLaunches = 16;

  /// A launcher that, on each given host, runs a process that performs `task` and prints kAnswer.
  using Question = std::function<ProcessOptions(const std::vector<Host>&, const char* task)>;
  HostPool(std::vector<Host> hosts, Question question)
      : hosts_(std::move(hosts)), question_(std::move(question)) {}

  bool empty() const { return hosts_.empty(); }
  /// Queries all hosts, logs those that respond again, and returns those lost since the last query.
  std::vector<std::string> ask(const char* task = "");
  bool all_lost() const { return lost_.size() == hosts_.size(); }
  /// The hosts that responded to the last query, as many as `ranks` need.
  std::vector<Host> for_ranks(int ranks) const;

  static constexpr const char* kAnswer = "concertina is here";

 private:
  using Group = std::vector<Host>;
  std::vector<Group> silent(const std::vector<Group>& groups, const char* task) const;

  const std::vector<Host> hosts_;
  const Question question_;
  std::set<std::string> lost_;
};

}  // namespace concertina
