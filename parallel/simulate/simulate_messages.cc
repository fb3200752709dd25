#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/simulate/simulation.h"

namespace concertina {

void Simulation::keep_outputs(int rank, const Action& action) {
  if (transfers_) return;
  const StageInfo& stage = stages_[at(action.stage)];
  std::vector<int>& unsent = ranks_[at(rank)].unsent;
  if (action.kind == Kind::F && stage.remote_next)
    unsent.push_back(messages_.find(action.stage + 1, action.microbatch, false));
  if (makes_input_gradient(action.kind) && stage.sends_gradient)
    unsent.push_back(messages_.find(action.stage - 1, action.microbatch, true));
}

bool Simulation::post_outputs(int rank) {
  std::vector<int> unsent = std::move(ranks_[at(rank)].unsent);
  ranks_[at(rank)].unsent.clear();
  for (const int message : unsent) {
    Message& one = messages_[message];
    one.sent = one.posted = ranks_[at(rank)].clock;
    one.sender = one.receiver = node(rank) - 1;
    posted(message);
  }
  return !unsent.empty();
}

int Simulation::input_of(const Action& action) const {
  const StageInfo& stage = stages_[at(action.stage)];
  const bool back = makes_input_gradient(action.kind);
  const bool remote =
      back ? stage.receives_gradient : action.kind == Kind::F && stage.remote_previous;
  const int message = messages_.find(action.stage, action.microbatch, back);
  return remote ? message : -1;
}

bool Simulation::await(int rank, const Action& action) {
  const bool back = makes_input_gradient(action.kind);
  if (const int message = input_of(action);
      message >= 0 && !arrived(rank, message, back ? Wait::gradient : Wait::input))
    return false;
  Outbox* outbox = transfers_ ? outbox_of(rank, action) : nullptr;
  return outbox == nullptr || has_buffer(rank, *outbox);
}

void Simulation::copy_input(int rank, const Action& action) {
  if (const int message = input_of(action); message >= 0)
    ranks_[at(rank)].clock += std::exchange(messages_[message].copy, 0.0);
}

bool Simulation::arrived(int rank, int message, Wait wait) {
  Message& one = messages_[message];
  if (one.end < 0) {
    one.waiters[rank == messages_.to(message) ? 0 : 1] = rank;
    return false;
  }
  if (one.end > ranks_[at(rank)].clock) {
    ranks_[at(rank)].clock = one.end;
    delays_[at(node(rank))] = {one.cause(), wait};
  }
  return true;
}

Simulation::Outbox* Simulation::outbox_of(int rank, const Action& action) {
  const StageInfo& stage = stages_[at(action.stage)];
  if (makes_input_gradient(action.kind) && stage.sends_gradient) return &ranks_[at(rank)].gradients;
  if (action.kind == Kind::F && stage.sends_unanswered()) return &ranks_[at(rank)].activations;
  return nullptr;
}

bool Simulation::has_buffer(int rank, const Outbox& outbox) {
  const int oldest = outbox.taken - kSendBuffers;
  if (oldest < 0) return true;
  CONCERTINA_CHECK(oldest < static_cast<int>(outbox.sends.size()),
                   "the plan deadlocks; check it before simulating");
  return arrived(rank, outbox.sends[at(oldest)], Wait::send_buffer);
}

double Simulation::look(int rank, double time) const {
  const UnderWay& one = ranks_[at(rank)].under_way;
  if (one.seconds < 0 || time < one.start || time >= ranks_[at(rank)].clock) return time;
  const int units = costs_.stages[at(plan_.rows[at(rank)][ranks_[at(rank)].position].stage)].units;
  if (units == 0) return time;
  const double unit = (ranks_[at(rank)].clock - one.start) / units;
  const double next = std::floor((time - one.start) / unit) + 1;
  return std::min(ranks_[at(rank)].clock, one.start + next * unit);
}

bool Simulation::post(int rank, const Action& action) {
  const bool forward = action.kind == Kind::SEND_F || action.kind == Kind::RECV_F;
  const bool send = is_send(action.kind);
  const int reader = action.stage + (send ? (forward ? 1 : -1) : 0);
  const int message = messages_.find(reader, action.microbatch, !forward);
  Message& one = messages_[message];
  double& now = ranks_[at(rank)].clock;
  now += costs_.post;
  if (const LinkCosts& link = costs_.link(messages_.from(message), messages_.to(message));
      send && std::isinf(link.bandwidth))
    now += costs_.boundary_bytes * link.send_cpu;  // the copy comes first
  (send ? one.sent : one.posted) = now;
  (send ? one.sender : one.receiver) = node(rank);
  if (send && !forward) ranks_[at(rank)].gradients.sends.push_back(message);
  if (send && forward && stages_[at(action.stage)].sends_unanswered())
    ranks_[at(rank)].activations.sends.push_back(message);
  posted(message);
  return true;
}

void Simulation::posted(int message) {
  if (const auto next = messages_.posted(message)) push(*next, message);
  passed(message);
}

void Simulation::proceed(int message, double time) {
  std::optional<double> next = messages_.proceed(message, time);
  while (next && *next == time) next = messages_.proceed(message, time);
  if (next) push(*next, message);
  passed(message);
}

void Simulation::passed(int message) {
  Message& one = messages_[message];
  if (one.end < 0) return;
  for (int& waiter : one.waiters)
    if (waiter >= 0) events_.push({one.end, std::exchange(waiter, -1)});
}

}  // namespace concertina
