#include "parallel/simulate/shared_cores.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/index.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

constexpr double kNoEvent = std::numeric_limits<double>::infinity();

/// Ranks that share cores: the ranks of a group share `cores` cores (0: one per rank).
struct Places {
  std::vector<int> group;  // by rank
  int cores = 0;
};

/// Waiting ranks are never idle for long, so no core appears idle and the kernel migrates ranks
/// less than once per step: each rank shares a core with the same ranks all the time. Which ranks
/// these are is random; the three variants of `Deal` stand for all possibilities. If ranks cannot
/// be divided evenly, they share all cores of their host.
enum class Deal { runs, turns, there_and_back };

/// `idle` is a fictitious host for ranks without actions.
Places dealt(const std::vector<int>& hosts, int cores, int idle, Deal deal) {
  std::map<int, int> count, met;
  for (const int host : hosts) ++count[host];
  Places places{.group = {}, .cores = 1};
  for (const int host : hosts) {
    if (host == idle) {
      places.group.push_back(idle * cores);
      continue;
    }
    const int i = met[host]++, round = i / cores, turn = i % cores;
    const int core = deal == Deal::runs                      ? i / (count[host] / cores)
                     : deal == Deal::turns || round % 2 == 0 ? turn
                                                             : cores - 1 - turn;
    places.group.push_back(host * cores + core);
  }
  return places;
}

std::vector<Places> all_places(const std::vector<int>& hosts, int cores, int idle) {
  std::map<int, int> count;
  for (const int host : hosts) ++count[host];
  for (const auto& [host, ranks] : count)
    if (host != idle && ranks % cores != 0) return {{hosts, cores}};
  return {dealt(hosts, cores, idle, Deal::runs), dealt(hosts, cores, idle, Deal::turns),
          dealt(hosts, cores, idle, Deal::there_and_back)};
}

/// Event simulation of the computation of a step: a rank starts its next action when its inputs
/// have arrived; the running actions of a group advance together.
class SharedCores {
 public:
  SharedCores(const Plan& plan, const Layout& layout, const Costs& costs, const Places& places)
      : plan_(plan),
        costs_(costs),
        stages_(stage_infos(layout)),
        index_(plan, layout),
        group_(places.group),
        cores_(places.cores),
        ends_(at(index_.nodes()), kNoEvent),
        ranks_(plan.rows.size()) {
    active_.resize(at(group_.empty() ? 1 : *std::ranges::max_element(group_) + 1));
    ranks_in_.resize(active_.size());
    for (const int group : group_) ++ranks_in_[at(group)];
  }

  double makespan() {
    for (bool moved = true; moved;) {
      start_what_can();
      const double next = next_event();
      moved = next < kNoEvent;
      if (moved) advance(next);
    }
    return now_ + update();
  }

 private:
  struct Rank {
    std::size_t position = 0;
    double left = -1;  // remaining work of the running action, in seconds; < 0: none
  };

  bool is_done(std::size_t rank) const { return ranks_[rank].position == plan_.rows[rank].size(); }
  int node(std::size_t rank) const {
    return index_.node(static_cast<int>(rank), static_cast<int>(ranks_[rank].position));
  }

  double message_seconds(int from, int to) const {
    const LinkCosts& link = costs_.link(from, to);
    return link.latency + costs_.boundary_bytes / link.bandwidth;
  }
  /// When the output of `producer` is available on `rank`.
  double arrival(int producer, int rank) const {
    if (producer < 0) return 0;
    const int from = index_.place(producer).rank;
    return ends_[at(producer)] + (from == rank ? 0 : message_seconds(from, rank));
  }
  double ready(int rank, const Action& action) const {
    const StageInfo& stage = stages_[at(action.stage)];
    double time = 0;
    if (action.kind == Kind::F && !stage.first)
      time = arrival(index_.find(Kind::F, action.stage - 1, action.microbatch), rank);
    if (makes_input_gradient(action.kind) && !stage.last)
      time = arrival(index_.find_input_gradient(action.stage + 1, action.microbatch), rank);
    return time;
  }
  /// Includes the CPU time for the rank's messages.
  double work(int rank, const Action& action) const {
    const StageInfo& stage = stages_[at(action.stage)];
    double seconds = costs_.seconds(action);
    const auto message = [&](bool there, int other, bool receives) {
      const int peer = there ? stages_[at(other)].rank : rank;
      if (peer == rank) return;
      const double per_byte =
          receives ? costs_.link(peer, rank).receive_cpu : costs_.link(rank, peer).send_cpu;
      seconds += costs_.post + costs_.boundary_bytes * per_byte;
    };
    if (action.kind == Kind::F) {
      message(!stage.first, action.stage - 1, true);
      message(!stage.last, action.stage + 1, false);
    }
    if (makes_input_gradient(action.kind)) {
      message(!stage.last, action.stage + 1, true);
      message(!stage.first, action.stage - 1, false);
    }
    return seconds;
  }

  void start_what_can() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Rank& mine = ranks_[rank];
      const std::vector<Action>& row = plan_.rows[rank];
      while (!is_done(rank) && !is_compute(row[mine.position].kind)) ++mine.position;
      if (is_done(rank) || mine.left >= 0) continue;
      const Action& action = row[mine.position];
      if (ready(static_cast<int>(rank), action) > now_) continue;
      mine.left = work(static_cast<int>(rank), action);
      ++active_[at(group_[rank])];
    }
  }
  double rate(std::size_t rank) const {
    if (cores_ == 0) return 1;
    const int active = active_[at(group_[rank])], all = ranks_in_[at(group_[rank])];
    const double wanted = active + kWaitingShare * (all - active);
    return std::min(1.0, cores_ / wanted);
  }
  double next_event() const {
    double next = kNoEvent;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].left >= 0) {
        next = std::min(next, now_ + ranks_[rank].left / rate(rank));
      } else if (!is_done(rank)) {
        const double time = ready(static_cast<int>(rank), plan_.rows[rank][ranks_[rank].position]);
        if (time > now_) next = std::min(next, time);
      }
    }
    return next;
  }
  void advance(double time) {
    std::vector<std::size_t> ended;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].left < 0) continue;
      const double left = ranks_[rank].left - (time - now_) * rate(rank);
      ranks_[rank].left = std::max(0.0, left);
      if (left <= 1e-12 * time) ended.push_back(rank);
    }
    now_ = time;
    for (const std::size_t rank : ended) {
      ends_[at(node(rank))] = now_;
      ranks_[rank].left = -1;
      ++ranks_[rank].position;
      --active_[at(group_[rank])];
    }
  }
  /// Seconds that the slowest group's update takes, with all its ranks running at once.
  double update() const {
    if (costs_.ranks.empty()) return 0;
    std::vector<double> sum(active_.size()), longest(active_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const RankCosts& own = costs_.ranks[rank];
      const double seconds = own.load + own.norm + own.update + own.refresh;
      sum[at(group_[rank])] += seconds;
      longest[at(group_[rank])] = std::max(longest[at(group_[rank])], seconds);
    }
    double most = 0;
    for (std::size_t group = 0; group < sum.size(); ++group)
      most = std::max({most, longest[group], cores_ > 0 ? sum[group] / cores_ : 0});
    return most;
  }

  const Plan& plan_;
  const Costs& costs_;
  const std::vector<StageInfo> stages_;
  const PlanIndex index_;
  const std::vector<int> group_;
  const int cores_;
  std::vector<double> ends_;  // by node
  std::vector<Rank> ranks_;
  std::vector<int> active_;    // by group: ranks with a running action
  std::vector<int> ranks_in_;  // by group
  double now_ = 0;
};

}  // namespace

double shared_core_factor(const Plan& plan, const Layout& layout, const Costs& costs,
                          const std::vector<int>& hosts, int cores) {
  if (cores <= 0) return 1;
  std::vector<int> host = hosts.empty() ? std::vector<int>(plan.rows.size(), 0) : hosts;
  // The kernel separates ranks that compute from those that never do.
  const int idle = *std::ranges::max_element(host) + 1;
  for (std::size_t rank = 0; rank < host.size(); ++rank)
    if (plan.rows[rank].empty()) host[rank] = idle;
  const double alone = SharedCores(plan, layout, costs, {host, 0}).makespan();
  double shared = 0;
  const std::vector<Places> all = all_places(host, cores, idle);
  for (const Places& places : all)
    shared += SharedCores(plan, layout, costs, places).makespan() / static_cast<double>(all.size());
  CONCERTINA_CHECK(alone <= shared * (1 + 1e-9),
                   "a step takes {} s with shared cores, but {} s without", shared, alone);
  return alone > 0 ? shared / alone : 1;
}

}  // namespace concertina
