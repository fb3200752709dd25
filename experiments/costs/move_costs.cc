#include "experiments/costs/move_costs.h"

#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "experiments/costs/links.h"

namespace concertina {
namespace {

double bytes_of_move(const Move& move, std::size_t kinds) {
  return static_cast<double>(move.count() * sizeof(float) * (move.kinds ? kinds : 1));
}

/// What one rank does in a round. Hosts share one link out and one link in, so those count by host.
struct RankWork {
  double out = 0, in = 0;  // seconds on links of its own, within a host
  double cpu = 0;          // seconds that messages take of the rank's time
  double latency = 0;
  double copied = 0, made = 0;  // bytes
};

class RoundClock {
 public:
  RoundClock(std::size_t world, std::size_t kinds, const MachineModel& machine)
      : kinds_(kinds), machine_(machine), works_(world), host_out_(world), host_in_(world) {
    add_links(machine, static_cast<int>(world), costs_);
  }

  void add(const Move& move) {
    const double bytes = bytes_of_move(move, kinds_);
    works_[at(move.to)].made += bytes;
    if (move.from == move.to)
      works_[at(move.to)].copied += bytes;
    else
      send(move.from, move.to, bytes);
  }

  /// What the slowest rank takes.
  MoveSeconds seconds() const {
    MoveSeconds slowest;
    for (std::size_t rank = 0; rank < works_.size(); ++rank) {
      const RankWork& work = works_[rank];
      const std::size_t host = host_of(rank);
      MoveSeconds one;
      one.links =
          std::max({work.out, work.in, work.cpu, host_out_[host], host_in_[host]}) + work.latency;
      one.copies = work.copied * machine_.copy_s_per_byte;
      one.blocks = work.made * machine_.block_s_per_byte;
      if (one.move() > slowest.move()) slowest = one;
    }
    return slowest;
  }

 private:
  std::size_t host_of(std::size_t rank) const {
    return costs_.hosts.empty() ? 0 : at(costs_.hosts[rank]);
  }

  void send(int from, int to, double bytes) {
    LinkCosts link = costs_.link(from, to);
    if (link == LinkCosts{}) link.receive_cpu = machine_.copy_s_per_byte;
    RankWork &sender = works_[at(from)], &receiver = works_[at(to)];
    sender.cpu += bytes * link.send_cpu;
    receiver.cpu += bytes * link.receive_cpu;
    sender.latency = std::max(sender.latency, link.latency);
    receiver.latency = std::max(receiver.latency, link.latency);
    if (std::isinf(link.bandwidth)) return;
    const double seconds = bytes / link.bandwidth;
    if (costs_.is_remote(from, to)) {
      host_out_[host_of(at(from))] += seconds;
      host_in_[host_of(at(to))] += seconds;
    } else {
      sender.out += seconds;
      receiver.in += seconds;
    }
  }

  std::size_t kinds_;
  const MachineModel& machine_;
  Costs costs_;
  std::vector<RankWork> works_;
  std::vector<double> host_out_, host_in_;
};

}  // namespace

PairBytes pair_bytes(const MovePlan& plan, std::size_t kinds) {
  PairBytes bytes;
  for (const MoveRound& round : plan.rounds)
    for (const Move& move : round.moves)
      if (move.from != move.to) bytes[{move.from, move.to}] += bytes_of_move(move, kinds);
  return bytes;
}

std::pair<int, int> busiest_pair(const PairBytes& bytes, const std::vector<int>& hosts) {
  std::pair<int, int> busiest{0, 0};
  std::pair<bool, double> most{false, 0};
  for (const auto& [ends, here] : bytes) {
    const bool remote = !hosts.empty() && hosts[at(ends.first)] != hosts[at(ends.second)];
    if (std::pair(remote, here) <= most) continue;
    most = {remote, here};
    busiest = ends;
  }
  return busiest;
}

RankBytes busiest_rank(const PairBytes& bytes) {
  std::map<int, RankBytes> ranks;
  for (const auto& [ends, here] : bytes) {
    ranks[ends.first].out += here;
    ranks[ends.second].in += here;
  }
  RankBytes busiest;
  for (auto& [rank, one] : ranks) {
    one.rank = rank;
    if (one.most() > busiest.most()) busiest = one;
  }
  return busiest;
}

MoveSeconds predict_move(const MovePlan& plan, std::size_t kinds, const MachineModel& machine) {
  MoveSeconds all;
  for (const MoveRound& round : plan.rounds) {
    RoundClock clock(plan.peak_bytes.size(), kinds, machine);
    for (const Move& move : round.moves) clock.add(move);
    const MoveSeconds slowest = clock.seconds();
    all.links += slowest.links;
    all.copies += slowest.copies;
    all.blocks += slowest.blocks;
  }
  all.rebuild = machine.rebuild_s;
  return all;
}

double seconds_per_byte(const LinkCosts& link) {
  return std::isinf(link.bandwidth) ? link.send_cpu + link.receive_cpu : 1 / link.bandwidth;
}

}  // namespace concertina
