#include "parallel/predict/move_costs.h"

#include <cmath>

#include "core/index.h"

namespace concertina {
namespace {

/// The work of one rank in a round. The ranks of a host share one link out and one in, so traffic
/// between hosts is counted per host.
struct RankWork {
  double out = 0, in = 0;  // seconds on separate links within a host
  double cpu = 0;          // seconds of the rank's CPU time for messages
  double latency = 0;
  double copied = 0, received = 0;  // bytes, into new blocks
};

class RoundClock {
 public:
  RoundClock(std::size_t world, std::size_t kinds, const MachineModel& machine)
      : kinds_(kinds), moves_(machine.moves), works_(world), host_out_(world), host_in_(world) {
    add_links(machine, static_cast<int>(world), costs_);
  }

  void add(const Move& move) {
    const double bytes = static_cast<double>(move.bytes(kinds_));
    if (move.from == move.to) {
      works_[at(move.to)].copied += bytes;
    } else {
      works_[at(move.to)].received += bytes;
      send(move.from, move.to, bytes);
    }
  }

  /// Returns the time of the slowest rank's copies plus that of the slowest rank's messages.
  MoveSeconds seconds() const {
    MoveSeconds copies, messages;
    for (std::size_t rank = 0; rank < works_.size(); ++rank) {
      const RankWork& work = works_[rank];
      const std::size_t host = host_of(rank);
      const MoveSeconds copy{.copies = work.copied * moves_.copy_s_per_byte,
                             .blocks = work.copied * moves_.block_s_per_byte};
      const MoveSeconds message{
          .links = std::max({work.out, work.in, work.cpu, host_out_[host], host_in_[host]}) +
                   work.latency,
          .blocks = work.received * moves_.block_s_per_byte};
      if (copy.move() > copies.move()) copies = copy;
      if (message.move() > messages.move()) messages = message;
    }
    return {.links = messages.links,
            .copies = copies.copies,
            .blocks = copies.blocks + messages.blocks};
  }

 private:
  std::size_t host_of(std::size_t rank) const {
    return costs_.hosts.empty() ? 0 : at(costs_.hosts[rank]);
  }

  void send(int from, int to, double bytes) {
    const bool remote = costs_.is_remote(from, to);
    if (!remote && moves_.exchange_s_per_byte > 0) {
      works_[at(from)].out += bytes * moves_.exchange_s_per_byte;
      works_[at(to)].in += bytes * moves_.exchange_s_per_byte;
      return;
    }
    LinkCosts link = costs_.link(from, to);
    if (link == LinkCosts{}) link.receive_cpu = moves_.copy_s_per_byte;
    RankWork &sender = works_[at(from)], &receiver = works_[at(to)];
    sender.cpu += bytes * link.send_cpu;
    receiver.cpu += bytes * link.receive_cpu;
    sender.latency = std::max(sender.latency, link.latency);
    receiver.latency = std::max(receiver.latency, link.latency);
    if (std::isinf(link.bandwidth)) return;
    const double seconds = bytes / link.bandwidth;
    if (remote) {
      host_out_[host_of(at(from))] += seconds;
      host_in_[host_of(at(to))] += seconds;
    } else {
      sender.out += seconds;
      receiver.in += seconds;
    }
  }

  std::size_t kinds_;
  const MoveRates& moves_;
  Costs costs_;
  std::vector<RankWork> works_;
  std::vector<double> host_out_, host_in_;
};

}  // namespace

PairBytes pair_bytes(const MovePlan& plan, std::size_t kinds) {
  PairBytes bytes;
  for (const MoveRound& round : plan.rounds)
    for (const Move& move : round.moves)
      if (move.from != move.to)
        bytes[{move.from, move.to}] += static_cast<double>(move.bytes(kinds));
  return bytes;
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
  for (double MoveSeconds::*part :
       {&MoveSeconds::links, &MoveSeconds::copies, &MoveSeconds::blocks})
    all.*part *= machine.moves.move_factor;
  all.rebuild = machine.moves.rebuild_s;
  return all;
}

double seconds_per_byte(const LinkCosts& link) {
  return std::isinf(link.bandwidth) ? link.send_cpu + link.receive_cpu : 1 / link.bandwidth;
}

}  // namespace concertina
