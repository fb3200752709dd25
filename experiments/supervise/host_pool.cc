#include "experiments/supervise/host_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"

namespace concertina {
namespace {

constexpr double kAnswerPollSeconds = 0.01;

/// Hosts that one launcher asks, and the file that has their answers.
struct Asked {
  std::size_t hosts;
  File answers;
  Process process;
  bool over = false;
};

/// mpirun's exit code is no proof: that of Open MPI 5 is 0 where it lost the host.
bool have_answered(const Asked& asked) {
  const std::string_view answer = HostPool::kAnswer;
  std::string text(std::min<std::uint64_t>(asked.answers.size(), 1 << 20), '\0');
  asked.answers.read_at(0, std::as_writable_bytes(std::span(text)));
  std::size_t answers = 0;
  for (std::size_t at = 0; (at = text.find(answer, at)) != std::string::npos; at += answer.size())
    ++answers;
  return answers >= asked.hosts;
}

/// Until all have answered or ended, or it takes too long.
void wait_for_answers(std::vector<Asked>& groups) {
  const double start = now();
  double limit = HostPool::kLongestSeconds;
  for (std::size_t open = groups.size(); open > 0 && now() < start + limit;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kAnswerPollSeconds));
    for (Asked& asked : groups) {
      if (asked.over) continue;
      const bool answered = have_answered(asked);
      asked.over = answered || asked.process.exit_code().has_value();
      if (asked.over) --open;
      if (answered)
        limit = std::min(
            limit, std::max(HostPool::kAnswerSeconds, HostPool::kTimesFirst * (now() - start)));
    }
  }
}

/// How many are in each of so many parts, at most.
std::size_t size_of_parts(std::size_t count, std::size_t parts) {
  return (count + parts - 1) / parts;
}

/// In their order, with at most so many in each.
std::vector<std::vector<Host>> groups_of(const std::vector<Host>& hosts, std::size_t size) {
  std::vector<std::vector<Host>> groups;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (h % size == 0) groups.emplace_back();
    groups.back().push_back(hosts[h]);
  }
  return groups;
}

}  // namespace

/// The groups in which not every host answers.
std::vector<HostPool::Group> HostPool::silent(const std::vector<Group>& groups,
                                              const char* task) const {
  std::vector<Asked> all;
  for (const Group& group : groups) {
    File answers = memory_file("the answer of a host");
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
  std::vector<Host> unknown = hosts_;
  for (std::size_t size = size_of_parts(hosts_.size(), kUsualLaunches); !unknown.empty();
       size = size_of_parts(size, kParts)) {
    std::vector<Host> among;
    for (const Group& group : silent(groups_of(unknown, size), task))
      if (size == 1)
        lost.insert(group[0].name);
      else
        among.insert(among.end(), group.begin(), group.end());
    unknown = std::move(among);
  }
  std::vector<std::string> newly_lost;
  for (const Host& host : hosts_)
    if (lost.contains(host.name) && !lost_.contains(host.name))
      newly_lost.push_back(host.name);
    else if (!lost.contains(host.name) && lost_.contains(host.name))
      log::info("host {} is there again", host.name);
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
