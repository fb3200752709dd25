#include "experiments/supervise/host_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"

namespace concertina {
namespace {

constexpr double kAnswerPollSeconds = 0.01;

/// Hosts that are queried by one launcher, and the file with their answers.
struct Asked {
  std::size_t hosts;
  File answers;
  Process process;
};

/// Counts answers, because mpirun's exit code is unreliable: Open MPI 5 returns 0 for a lost host.
bool have_answered(const Asked& asked) {
  const std::string_view answer = HostPool::kAnswer;
  std::string text(std::min<std::uint64_t>(asked.answers.size(), 1 << 20), '\0');
  asked.answers.read_at(0, std::as_writable_bytes(std::span(text)));
  std::size_t answers = 0;
  for (std::size_t at = 0; (at = text.find(answer, at)) != std::string::npos; at += answer.size())
    ++answers;
  return answers >= asked.hosts;
}

/// Waits until all have answered or exited, or until the timeout.
void wait_for_answers(std::vector<Asked>& groups) {
  const double start = now();
  double limit = HostPool::kLongestSeconds;
  const auto is_over = [&](Asked& asked) {
    if (!have_answered(asked)) return asked.process.exit_code().has_value();
    limit = std::min(limit,
                     std::max(HostPool::kAnswerSeconds, HostPool::kTimesFirst * (now() - start)));
    return true;
  };
  while (now() < start + limit && std::ranges::count_if(groups, is_over) < std::ssize(groups))
    std::this_thread::sleep_for(std::chrono::duration<double>(kAnswerPollSeconds));
}

/// Splits hosts, in order, into at most `most` groups of about the same size.
std::vector<std::vector<Host>> groups_of(const std::vector<Host>& hosts, std::size_t most) {
  std::vector<std::vector<Host>> groups;
  const std::size_t size = (hosts.size() + most - 1) / most;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (h % size == 0) groups.emplace_back();
    groups.back().push_back(hosts[h]);
  }
  return groups;
}

}  // namespace

/// The groups in which not every host responds.
std::vector<HostPool::Group> HostPool::silent(const std::vector<Group>& groups,
                                              const char* task) const {
  std::vector<Asked> all;
  for (const Group& group : groups) {
    File answers = memory_file("a host's answer");
    ProcessOptions options = question_(group, task);
    options.out = options.errors = answers.descriptor();
    Process process(options);
    all.push_back({group.size(), std::move(answers), std::move(process)});
  }
  wait_for_answers(all);
  std::vector<Group> found;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (!have_answered(all[g])) found.push_back(groups[g]);
  return found;
}

std::vector<std::string> HostPool::ask(const char* task) {
  constexpr std::size_t kParts = 8;
  std::set<std::string> lost;
  for (std::vector<Group> groups = groups_of(hosts_, kDefaultLaunches); !groups.empty();) {
    std::vector<Group> among;
    for (const Group& group : silent(groups, task))
      if (group.size() == 1)
        lost.insert(group[0].name);
      else
        std::ranges::move(groups_of(group, kParts), std::back_inserter(among));
    groups = std::move(among);
  }
  std::vector<std::string> newly_lost;
  for (const Host& host : hosts_)
    if (lost.contains(host.name) && !lost_.contains(host.name))
      newly_lost.push_back(host.name);
    else if (!lost.contains(host.name) && lost_.contains(host.name))
      log::info("host {} responds again", host.name);
  lost_ = std::move(lost);
  return newly_lost;
}

std::vector<Host> HostPool::for_ranks(int ranks) const {
  std::vector<Host> there;
  for (const Host& host : hosts_)
    if (!lost_.contains(host.name)) there.push_back(host);
  return first_slots(there, ranks);
}

}  // namespace concertina
