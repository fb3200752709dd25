// A NCCL communicator with its own stream, and the ordered messages that pass over it.
// Invariants: no call waits for another rank. An operation starts after the kernels issued before
// it (its stream waits for an event) and is done when an event recorded after it has completed. No
// kernel ever waits for a lane, so kernels finish regardless of the other ranks.
#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <vector>

#include "core/cuda/base/handles.h"
#include "parallel/comm/nccl_job.h"
#include "parallel/comm/work_pool.h"

namespace concertina {

/// Membership in at most one queue; intrusive, so queues need no memory.
using NcclQueued =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

class NcclWork final : public Work::State, public NcclQueued {
 public:
  /// Reserves capacity for `most` messages.
  NcclWork(WorkPool<NcclWork>& pool, NcclJob& job, std::size_t most);

  /// Begins an operation that follows the kernels issued so far. `peer` is a rank of the job, used
  /// in errors (-1: all ranks).
  void begin(const char* operation, const char* direction, int peer);
  // The messages of the operation, with ranks of the lane. Empty messages are skipped on both ends.
  void send(ConstBytes data, int to);
  void receive(Bytes data, int from);
  void broadcast(Bytes data, int root);
  void post(NcclLane& lane);

  bool test() override;
  /// If unfinished, the device may still use its events, so it is not reused.
  void recycle() override;
  int waits_for() const override { return -1; }  // NCCL does not report it

  /// For the queue that runs it: hold() makes `stream` wait for the preceding kernels, issue()
  /// makes the NCCL calls, and launched() marks the end after the work in `stream`.
  void hold(cudaStream_t stream) const { ready_.hold(stream); }
  void issue(const NcclHandle& handle, cudaStream_t stream) const;
  void launched(cudaStream_t stream);
  std::string text() const;

  // The message from this rank to itself.
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
  /// Issues as many operations as possible. Returns true if none is left to issue.
  bool advance();
  void forget(NcclWork& work);

 private:
  cuda::Stream stream_;
  std::unique_ptr<NcclHandle> handle_;  // destroyed before its stream
  NcclQueue queue_;                     // not issued yet
  NcclWork* launching_ = nullptr;       // call that NCCL has not completed
};

/// Messages from a rank to itself, which NCCL supports only if both ends are in one group.
class NcclSelf {
 public:
  void send(NcclWork& work) { (sends_.push_back(work), match()); }
  void receive(NcclWork& work) { (receives_.push_back(work), match()); }

 private:
  void match();

  cuda::Stream stream_;
  NcclQueue sends_, receives_;  // unmatched; at least one of them is empty
};

}  // namespace concertina
