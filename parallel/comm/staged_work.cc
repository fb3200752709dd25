#include "parallel/comm/staged_work.h"

#include <algorithm>
#include <utility>

namespace concertina {

Staging& StagingStore::take(std::size_t bytes) {
  std::vector<Staging*>& idle = idle_[bytes];
  if (idle.empty()) {
    all_.push_back(memory_.make_staging(bytes));
    idle.reserve(all_.size());
    return *all_.back();
  }
  Staging& staging = *idle.back();
  idle.pop_back();
  return staging;
}

void StagingStore::give(Staging& staging) {
  idle_[staging.host().size()].push_back(&staging);
}

void StagingDesk::progress() {
  std::size_t started = 0;
  for (; started < queue.size() && queue[started]->fetched(); ++started) queue[started]->start();
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(started));
}

StagedWork::StagedWork(WorkPool<StagedWork>& pool, StagingDesk& desk, Communicator& transport,
                       std::size_t most)
    : pool_(pool), desk_(desk), transport_(transport) {
  fetches_.reserve(most);
  landings_.reserve(most);
  sends_.reserve(most);
  receives_.reserve(most);
  desk_.queue.reserve(++desk_.works);
}

/// Starts the copy that brings `data` to the host.
Bytes StagedWork::fetch(ConstBytes data) {
  Staging& staging = *fetches_.emplace_back(&desk_.store.take(data.size()));
  staging.mark();
  staging.fetch(data.data());
  return staging.host();
}

/// Where the transport shall put what belongs into `data`: kernels issued before this may still
/// read there.
Bytes StagedWork::land(Bytes data) {
  Landing& landing = landings_.emplace_back(&desk_.store.take(data.size()), data.data());
  landing.staging->mark();
  return landing.staging->host();
}

void StagedWork::post(Kind kind, int peer) {
  kind_ = kind;
  peer_ = peer;
  phase_ = Phase::fetching;
  desk_.queue.push_back(this);
  desk_.progress();
}

void StagedWork::send(ConstBytes data, int to) {
  fetch(data);
  post(Kind::send, to);
}

/// At once: the order of receives is their own, and who sends may be waiting for it.
void StagedWork::receive(Bytes data, int from) {
  work_ = transport_.irecv(land(data), from);
  phase_ = Phase::moving;
}

void StagedWork::broadcast(Bytes data, int root) {
  if (root == transport_.rank())
    fetch(data);
  else
    land(data);
  post(Kind::broadcast, root);
}

void StagedWork::exchange(std::span<const Send> sends, std::span<const Receive> receives) {
  ConstBytes last, staged;  // one block to several ranks is copied once
  for (const auto& [data, to, step] : sends) {
    if (data.data() != last.data() || data.size() != last.size() || last.empty())
      staged = fetch(last = data);
    sends_.push_back({staged, to, step});
  }
  for (const auto& [data, from, step] : receives) receives_.push_back({land(data), from, step});
  post(Kind::exchange, -1);
}

bool StagedWork::fetched() const {
  return std::all_of(fetches_.begin(), fetches_.end(), [](Staging* one) { return one->idle(); });
}

void StagedWork::start() {
  const Bytes buffer = !fetches_.empty() ? fetches_[0]->host() : Bytes();
  switch (kind_) {
    case Kind::send:
      work_ = transport_.isend(buffer, peer_);
      break;
    case Kind::broadcast:
      work_ =
          transport_.broadcast(landings_.empty() ? buffer : landings_[0].staging->host(), peer_);
      break;
    case Kind::exchange:
      work_ = transport_.exchange(sends_, receives_);
  }
  phase_ = Phase::moving;
}

bool StagedWork::landed() const {
  return std::all_of(landings_.begin(), landings_.end(),
                     [](const Landing& one) { return one.staging->idle(); });
}

bool StagedWork::test() {
  desk_.progress();
  if (phase_ == Phase::moving && work_.test()) {
    for (const Landing& one : landings_) one.staging->deliver(one.to);
    phase_ = Phase::delivering;
  }
  if (phase_ == Phase::delivering && landed()) phase_ = Phase::done;
  return phase_ == Phase::done;
}

void StagedWork::recycle() {
  if (phase_ == Phase::fetching) std::erase(desk_.queue, this);
  work_ = {};
  if (phase_ == Phase::done) {
    for (Staging* one : fetches_) desk_.store.give(*one);
    for (const Landing& one : landings_) desk_.store.give(*one.staging);
  }
  fetches_.clear();
  landings_.clear();
  sends_.clear();
  receives_.clear();
  pool_.give(*this);
}

}  // namespace concertina
