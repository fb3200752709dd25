// The hosts of a supervised run: which of them answer, and which the next launch has.
// Invariants: a host that does not answer in time is not used until it answers again; the order in
// which hosts are taken is that in which they were given, so that the last ones are spares.
// Cost: where all of n hosts answer, one round of min(n, kUsualLaunches) launches; a lost one takes
// a round more for each factor of 8 in n / kUsualLaunches.
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
  /// Hosts have so long to answer, all asked at the same time, or so many times as long as the
  /// first one took: machines may be busy. Without any answer there is none after the longest time.
  static constexpr double kAnswerSeconds = 2, kTimesFirst = 4, kLongestSeconds = 20;
  static constexpr std::size_t kUsualLaunches = 16;

  /// A launcher that runs a process on each of some hosts, which does `task` and prints kAnswer.
  using Question = std::function<ProcessOptions(const std::vector<Host>&, const char* task)>;
  HostPool(std::vector<Host> hosts, Question question)
      : hosts_(std::move(hosts)), question_(std::move(question)) {}

  bool empty() const { return hosts_.empty(); }
  /// Asks all hosts, logs which are there again, and returns those that were lost since.
  std::vector<std::string> ask(const char* task = "");
  bool all_lost() const { return lost_.size() == hosts_.size(); }
  /// The hosts that answered last, as many as `ranks` need.
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
