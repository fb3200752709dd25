// A NCCL communicator with a stream of its own, and what goes over it: messages in their order.
// Invariants: no call here waits for another rank. What a lane is given starts after the kernels
// issued before that (an event that its stream waits for) and is done when an event after it has
// passed: no kernel ever waits for a lane, so kernels end whatever the other ranks do.
#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <vector>

#include "core/cuda/base/handles.h"
#include "parallel/comm/nccl_job.h"
#include "parallel/comm/work_pool.h"

namespace concertina {

/// In at most one queue, which needs no memory of its own.
using NcclQueued =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

class NcclWork final : public Work::State, public NcclQueued {
 public:
  /// It has room for `most` messages.
  NcclWork(WorkPool<NcclWork>& pool, NcclJob& job, std::size_t most);

  /// Begins an operation that comes after the kernels issued so far. `peer`: in the job, for
  /// errors; -1: all.
  void begin(const char* operation, const char* direction, int peer);
  // What it consists of; ranks are the lane's. Empty messages are none: both ends know.
  void send(ConstBytes data, int to);
  void receive(Bytes data, int from);
  void broadcast(Bytes data, int root);
  void post(NcclLane& lane);

  bool test() override;
  /// Unfinished: the device may still use its events, so it is not used again.
  void recycle() override;
  int waits_for() const override { return -1; }  // NCCL does not say

  /// By whoever runs it: `stream` waits for the kernels before it; the calls; the end is after
  /// what is in `stream`.
  void hold(cudaStream_t stream) const { ready_.hold(stream); }
  void issue(const NcclHandle& handle, cudaStream_t stream) const;
  void launched(cudaStream_t stream);
  std::string text() const;

  // The message from the rank to itself.
  Bytes own_memory() const;

 private:
  struct Message {
    std::byte* data;
    std::size_t bytes;
    int peer;
  };

  WorkPool<NcclWork>& pool_;
  NcclJob& job_;
  NcclLane* lane_ = nullptr;
  const char *operation_ = "", *direction_ = "";
  int peer_ = -1;
  std::size_t bytes_ = 0;
  std::vector<Message> sends_, receives_, broadcasts_;
  cuda::Marker ready_, done_;
  bool launched_ = false, finished_ = true;
};

using NcclQueue = boost::intrusive::list<NcclWork, boost::intrusive::constant_time_size<false>>;

class NcclLane {
 public:
  explicit NcclLane(std::unique_ptr<NcclHandle> handle);
  ~NcclLane() { handle_->job().remove(*this); }
  NcclLane(const NcclLane&) = delete;
  NcclLane& operator=(const NcclLane&) = delete;

  NcclHandle& handle() { return *handle_; }
  void post(NcclWork& work);
  /// Issues what it can; true if there is nothing left to issue.
  bool advance();
  void forget(NcclWork& work);

 private:
  cuda::Stream stream_;
  std::unique_ptr<NcclHandle> handle_;  // destroyed before its stream
  NcclQueue queue_;                     // not issued
  NcclWork* launching_ = nullptr;       // NCCL is not through with the call
};

/// Messages from a rank to itself, which NCCL has only where both ends are in one group.
class NcclSelf {
 public:
  void send(NcclWork& work) { (sends_.push_back(work), match()); }
  void receive(NcclWork& work) { (receives_.push_back(work), match()); }

 private:
  void match();

  cuda::Stream stream_;
  NcclQueue sends_, receives_;  // without their other end; one of them is empty
};

}  // namespace concertina
