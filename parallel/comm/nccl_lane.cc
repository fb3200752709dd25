#include "parallel/comm/nccl_lane.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace concertina {

NcclWork::NcclWork(WorkPool<NcclWork>& pool, NcclJob& job, std::size_t most)
    : pool_(pool), job_(job) {
  sends_.reserve(most);
  receives_.reserve(most);
  broadcasts_.reserve(1);
}

void NcclWork::begin(const char* operation, const char* direction, int peer) {
  lane_ = nullptr;
  operation_ = operation;
  direction_ = direction;
  peer_ = peer;
  bytes_ = 0;
  sends_.clear();
  receives_.clear();
  broadcasts_.clear();
  launched_ = finished_ = false;
  ready_.record(job_.kernels());
}

void NcclWork::send(ConstBytes data, int to) {
  bytes_ += data.size();
  sends_.push_back({const_cast<std::byte*>(data.data()), data.size(), to});  // NCCL only reads it
}

void NcclWork::receive(Bytes data, int from) {
  bytes_ += data.size();
  receives_.push_back({data.data(), data.size(), from});
}

void NcclWork::broadcast(Bytes data, int root) {
  bytes_ += data.size();
  broadcasts_.push_back({data.data(), data.size(), root});
}

void NcclWork::post(NcclLane& lane) {
  lane_ = &lane;
  lane.post(*this);
}

Bytes NcclWork::own_memory() const {
  const Message& one = sends_.empty() ? receives_[0] : sends_[0];
  return {one.data, one.bytes};
}

std::string NcclWork::text() const {
  std::string text = fmt::format("{} of {} bytes", operation_, bytes_);
  if (peer_ >= 0) text += fmt::format(" {} rank {}", direction_, peer_);
  return text;
}

void NcclWork::issue(const NcclHandle& handle, cudaStream_t stream) const {
  const auto each = [&](const std::vector<Message>& messages, const char* name, const auto& call) {
    for (const Message& one : messages)
      if (one.bytes > 0) handle.check(call(one), name);
  };
  handle.check(nccl().group_start(), "ncclGroupStart");
  each(receives_, "ncclRecv", [&](const Message& m) {
    return nccl().receive(m.data, m.bytes, ncclInt8, m.peer, handle.get(), stream);
  });
  each(sends_, "ncclSend", [&](const Message& m) {
    return nccl().send(m.data, m.bytes, ncclInt8, m.peer, handle.get(), stream);
  });
  each(broadcasts_, "ncclBroadcast", [&](const Message& m) {
    return nccl().broadcast(m.data, m.data, m.bytes, ncclInt8, m.peer, handle.get(), stream);
  });
  handle.check(nccl().group_end(), "ncclGroupEnd");
}

void NcclWork::launched(cudaStream_t stream) {
  done_.record(stream);
  launched_ = true;
}

bool NcclWork::test() {
  job_.progress();
  if (launched_ && done_.passed()) return finished_ = true;
  if (lane_ != nullptr) (void)lane_->handle().settled([this] { return text(); });
  job_.check_ranks();
  return false;
}

void NcclWork::recycle() {
  if (finished_) return pool_.give(*this);
  if (lane_ != nullptr) lane_->forget(*this);
}

NcclLane::NcclLane(std::unique_ptr<NcclHandle> handle) : handle_(std::move(handle)) {
  handle_->job().add_lane();
}

void NcclLane::post(NcclWork& work) {
  queue_.push_back(work);
  handle_->job().activate(*this);
}

bool NcclLane::advance() {
  for (;;) {
    if (launching_ != nullptr) {
      if (!handle_->settled([this] { return launching_->text(); })) return false;
      launching_->launched(stream_);
      launching_ = nullptr;
    }
    if (queue_.empty()) return true;
    launching_ = &queue_.front();
    queue_.pop_front();
    launching_->hold(stream_);
    launching_->issue(*handle_, stream_);
  }
}

void NcclLane::forget(NcclWork& work) {
  work.unlink();
  if (launching_ == &work) launching_ = nullptr;
}

void NcclSelf::match() {
  while (!sends_.empty() && !receives_.empty()) {
    NcclWork &send = sends_.front(), &receive = receives_.front();
    const Bytes from = send.own_memory(), to = receive.own_memory();
    if (from.size() != to.size())
      throw_failure(fmt::format("message size mismatch: expected {} bytes, received {}", to.size(),
                                from.size()),
                    receive.text());
    sends_.pop_front();
    receives_.pop_front();
    send.hold(stream_);
    receive.hold(stream_);
    if (!to.empty())
      cuda::check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDefault, stream_),
                  "cudaMemcpyAsync");
    send.launched(stream_);
    receive.launched(stream_);
  }
}

}  // namespace concertina
