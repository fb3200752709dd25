#include "parallel/comm/thread_work.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace concertina {

void ThreadWork::begin(const char* operation, std::size_t ends) {
  if (ends > most_) ends_.reset(new End[most_ = ends]);
  operation_ = operation;
  count_ = done_ = 0;
}

ChannelTransfer& ThreadWork::add(Channel& channel, Bytes data, int peer, const char* direction) {
  End& end = ends_[count_++];
  end.transfer.data = data.data();
  end.transfer.bytes = data.size();
  end.channel = &channel;
  end.peer = peer;
  end.direction = direction;
  return end.transfer;
}

void ThreadWork::send(Channel& channel, ConstBytes data, int to) {
  // The channel only reads what is sent.
  channel.send(add(channel, {const_cast<std::byte*>(data.data()), data.size()}, to, "to"));
}

void ThreadWork::receive(Channel& channel, Bytes data, int from) {
  channel.receive(add(channel, data, from, "from"));
}

bool ThreadWork::test() {
  for (; done_ < count_; ++done_)
    if (!finished(ends_[done_])) return false;
  return true;
}

void ThreadWork::recycle() {
  for (; done_ < count_; ++done_) ends_[done_].channel->withdraw(ends_[done_].transfer);
  pool_.give(*this);
}

bool ThreadWork::finished(End& end) const {
  auto status = end.transfer.status.load(std::memory_order_acquire);
  if (status == ChannelTransfer::Status::done) return true;
  const ThreadJob& job = *group_.job;
  const int peer = group_.members[end.peer];
  // Whoever leaves has posted all it ever will: only then is what is still queued lost.
  const bool lost = job.has_left(peer) || job.has_failed();
  if (lost) status = end.channel->settled(end.transfer);
  if (status == ChannelTransfer::Status::done) return true;
  if (status == ChannelTransfer::Status::mismatch)
    fail(end, fmt::format("sizes differ: {} bytes here, {} bytes on rank {}", end.transfer.bytes,
                          end.transfer.peer_bytes, peer));
  if (job.has_failed()) fail(end, job.text());
  if (lost) fail(end, fmt::format("rank {} has returned without the other end", peer));
  return false;
}

void ThreadWork::fail(const End& end, std::string why) const {
  throw_failure(std::move(why), fmt::format("rank {}, {} {} rank {}", group_.members[rank_],
                                            operation_, end.direction, group_.members[end.peer]));
}

}  // namespace concertina
