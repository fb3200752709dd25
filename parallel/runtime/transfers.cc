#include "parallel/runtime/transfers.h"

#include <set>

#include "core/error.h"
#include "core/failpoint.h"
#include "parallel/plan/plan_graph.h"

namespace concertina {
Transfers::Transfers(const Layout& layout, TraceRecorder& recorder)
    : layout_(layout), recorder_(recorder) {
  for (const Kind send : {Kind::SEND_B, Kind::SEND_F}) outbox(send).sends.reserve(kSendBuffers);
}

void Transfers::attach(Arena& arena, const RowMemory& memory, std::size_t bytes) {
  input_grads_.buffers.attach(arena, memory.input_grads, bytes, "gradients of stage inputs");
  frozen_outputs_.buffers.attach(arena, memory.frozen_outputs, bytes, "outputs of frozen stages");
}

void Transfers::connect(Communicator& world, Watchdog* watchdog, const std::vector<Action>& row,
                        int most) {
  world_ = &world;
  watchdog_ = watchdog;
  open_.reserve(static_cast<std::size_t>(most));
  world.reserve(static_cast<std::size_t>(most), 0);
  std::set<int> peers;
  for (const Action& action : row)
    if (is_transfer(action.kind)) peers.insert(peer_of(action));
  world.connect(std::vector<int>(peers.begin(), peers.end()));
}

int Transfers::peer_of(const Action& transfer) const {
  const bool next = transfer.kind == Kind::SEND_F || transfer.kind == Kind::RECV_B;
  return layout_.stage(transfer.stage + (next ? 1 : -1)).rank;
}

void Transfers::start(const Action& action, View message, Work& work) {
  const int peer = peer_of(action);
  if (is_send(action.kind) &&
      failpoint("lost-message", {{"step", recorder_.last().step}, {"rank", world_->rank()}}))
    return;
  work = is_send(action.kind) ? world_->isend(bytes_of(message), peer)
                              : world_->irecv(bytes_of(message), peer);
  open_.push_back({&work, action});
}

void Transfers::wait(const Action& action, Work& work) {
  const double start = recorder_.mark();  // test() may copy received data
  const bool open = std::erase_if(open_, [&](const Open& one) { return one.work == &work; }) > 0;
  if (!work.test()) {
    if (watchdog_ != nullptr)
      // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): names are literals
      watchdog_->at(name_of(action.kind).data(), action.stage, action.microbatch, peer_of(action));
    work.wait();
  }
  recorder_.waited(is_send(action.kind) ? WaitFor::send : WaitFor::receive, action, start);
  if (open) recorder_.completed(action);
}

void* Transfers::take_buffer(Kind send) {
  if (outbox(send).buffers.empty()) reclaim_oldest(send);
  return outbox(send).buffers.take();
}

void Transfers::post(const Action& send, View message) {
  const bool lost =
      failpoint("lost-message", {{"step", recorder_.last().step}, {"rank", world_->rank()}});
  outbox(send.kind).sends.push_back(
      {lost ? Work() : world_->isend(bytes_of(message), peer_of(send)), message.data, send});
}

void Transfers::reclaim_oldest(Kind send) {
  auto& [buffers, sends] = outbox(send);
  CONCERTINA_CHECK(!sends.empty(), "no send is pending");
  Sent& oldest = sends.front();
  wait(oldest.action, oldest.work);
  if (!oldest.over) recorder_.completed(oldest.action);
  buffers.give(oldest.buffer);
  sends.erase(sends.begin());
}

void Transfers::reclaim_all() {
  for (const Kind send : {Kind::SEND_B, Kind::SEND_F})
    while (!outbox(send).sends.empty()) reclaim_oldest(send);
}

void Transfers::progress() {
  std::erase_if(open_, [this](const Open& one) {
    if (!one.work->test()) return false;
    recorder_.completed(one.action);
    return true;
  });
  for (const Kind send : {Kind::SEND_B, Kind::SEND_F})
    for (Sent& one : outbox(send).sends) {
      if (one.over || !one.work.test()) continue;
      one.over = true;
      recorder_.completed(one.action);
    }
}

}  // namespace concertina
