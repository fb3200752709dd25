#include "tests/threads/thread_channel.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

namespace concertina {
namespace {

/// Copies if the sizes agree, and finalizes the status of both ends.
void match(ChannelTransfer& from, ChannelTransfer& to) {
  const bool fits = from.bytes == to.bytes;
  if (fits && from.bytes > 0) std::memcpy(to.data, from.data, from.bytes);
  from.peer_bytes = to.bytes;
  to.peer_bytes = from.bytes;
  const auto status = fits ? ChannelTransfer::Status::done : ChannelTransfer::Status::mismatch;
  from.status.store(status, std::memory_order_release);
  to.status.store(status, std::memory_order_release);
}

std::string text_of(std::exception_ptr why) {
  try {
    std::rethrow_exception(std::move(why));
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

void Channel::Queue::push(ChannelTransfer& transfer) {
  transfer.next = nullptr;
  (head == nullptr ? head : tail->next) = &transfer;
  tail = &transfer;
}

ChannelTransfer* Channel::Queue::pop() {
  ChannelTransfer* first = head;
  if (first != nullptr) head = first->next;
  return first;
}

void Channel::Queue::remove(ChannelTransfer& transfer) {
  ChannelTransfer* before = nullptr;
  ChannelTransfer* at = head;
  while (at != nullptr && at != &transfer) before = std::exchange(at, at->next);
  if (at == nullptr) return;
  (before == nullptr ? head : before->next) = at->next;
  if (tail == at) tail = before;
}

bool Channel::store(const ChannelTransfer& transfer) {
  if (stored_ == nullptr || transfer.bytes > kEagerBytes) return false;
  for (int i = 0; i < kEagerMessages; ++i) {
    Stored& slot = stored_[i];
    if (slot.transfer.status.load(std::memory_order_relaxed) == ChannelTransfer::Status::queued)
      continue;
    if (transfer.bytes > 0) std::memcpy(slot.copy.data(), transfer.data, transfer.bytes);
    slot.transfer.data = slot.copy.data();
    slot.transfer.bytes = transfer.bytes;
    slot.transfer.status.store(ChannelTransfer::Status::queued, std::memory_order_relaxed);
    sends_.push(slot.transfer);
    return true;
  }
  return false;
}

void Channel::send(ChannelTransfer& transfer) {
  const std::lock_guard lock(mutex_);
  transfer.status.store(ChannelTransfer::Status::queued, std::memory_order_relaxed);
  if (ChannelTransfer* waiting = receives_.pop()) {
    match(transfer, *waiting);
  } else if (store(transfer)) {
    transfer.status.store(ChannelTransfer::Status::done, std::memory_order_release);
  } else {
    sends_.push(transfer);
  }
}

void Channel::receive(ChannelTransfer& transfer) {
  const std::lock_guard lock(mutex_);
  transfer.status.store(ChannelTransfer::Status::queued, std::memory_order_relaxed);
  if (ChannelTransfer* waiting = sends_.pop()) {
    match(*waiting, transfer);
  } else {
    receives_.push(transfer);
  }
}

void Channel::withdraw(ChannelTransfer& transfer) {
  const std::lock_guard lock(mutex_);
  sends_.remove(transfer);
  receives_.remove(transfer);
}

ChannelTransfer::Status Channel::settled(const ChannelTransfer& transfer) {
  const std::lock_guard lock(mutex_);
  return transfer.status.load(std::memory_order_relaxed);
}

ThreadJob::ThreadJob(int ranks) : left_(std::make_unique<std::atomic<bool>[]>(ranks)) {}

void ThreadJob::fail(int rank, std::exception_ptr why) noexcept {
  const std::lock_guard lock(mutex_);
  if (has_failed()) return;
  text_ = fmt::format("rank {} failed: {}", rank, text_of(why));
  why_ = std::move(why);
  failed_.store(true, std::memory_order_release);
}

ThreadGroup::ThreadGroup(std::shared_ptr<ThreadJob> its_job, std::vector<int> ranks, Delivery how)
    : job(std::move(its_job)),
      members(std::move(ranks)),
      delivery(how),
      channels(std::make_unique<Channel[]>(2 * members.size() * members.size())) {
  if (delivery != Delivery::eager) return;
  for (std::size_t i = 0; i < 2 * members.size() * members.size(); ++i) channels[i].allow_eager();
}

}  // namespace concertina
