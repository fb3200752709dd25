// State shared by the NCCL communicators of one rank: the kernel stream, the lanes with pending
// work, and the detection of failed ranks. Invariant: every wait ends. NCCL communicators are
// non-blocking and polled. A failed rank is detected on the control communicator, because kernels
// that wait for it detect nothing.
#pragma once

#include <cuda_runtime_api.h>
#include <sched.h>

#include <memory>
#include <string>
#include <vector>

#include "core/cuda/base/memory.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/nccl_library.h"

namespace concertina {

class NcclLane;
class NcclHandle;

class NcclJob {
 public:
  /// Collective over `control`. `memory` must outlive it.
  NcclJob(Communicator& control, cuda::DeviceMemory& memory);
  ~NcclJob();
  NcclJob(const NcclJob&) = delete;
  NcclJob& operator=(const NcclJob&) = delete;

  int rank() const { return control_->rank(); }
  cuda::DeviceMemory& memory() { return memory_; }
  cudaStream_t kernels() const { return memory_.stream(); }

  /// Throws if a rank of the job has failed.
  void check_ranks();
  template <class Done>
  void wait_for(const Done& done) {
    while (!done()) {
      check_ranks();
      ::sched_yield();
    }
  }

  /// One queue of lanes for all communicators: waiting for any Work advances all of them.
  void activate(NcclLane& lane);
  void progress();
  void add_lane() { active_.reserve(++lanes_); }
  void remove(NcclLane& lane) { std::erase(active_, &lane); }

  void add(NcclHandle& handle) { handles_.push_back(&handle); }
  void remove(NcclHandle& handle) { std::erase(handles_, &handle); }
  /// Aborts all pending NCCL operations on this GPU.
  void abort();

 private:
  std::unique_ptr<Communicator> control_;
  cuda::DeviceMemory& memory_;
  std::byte token_{};
  Work canary_;          // completes when the next rank closes, or fails with an error
  bool closes_ = false;  // orderly shutdown: this rank also sends a token to the previous one
  std::vector<NcclLane*> active_;
  std::size_t lanes_ = 0;  // total constructed
  std::vector<NcclHandle*> handles_;
};

/// A NCCL communicator. Aborts if destroyed by an exception; otherwise it must be finalized first.
class NcclHandle {
 public:
  /// Creates the communicator of the job, collective over its ranks.
  NcclHandle(NcclJob& job, Communicator& control);
  /// Calls ncclCommSplit; returns null if `color` is negative. `key` is the rank in the new
  /// communicator. `most_blocks` limits the blocks of its kernels (0: NCCL's default).
  static std::unique_ptr<NcclHandle> split(NcclHandle& parent, int color, int key, int most_blocks);
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  ncclComm_t get() const { return comm_; }
  NcclJob& job() const { return job_; }
  /// Returns whether NCCL has completed the last call. Throws if it failed, with the text from
  /// `what`, such as "isend of 8 bytes to rank 3".
  template <class What>
  bool settled(const What& what) const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t result = nccl().comm_state(comm_, &state);
    if (result != ncclSuccess) fail(result, what());
    if (state == ncclInProgress) return false;
    if (state != ncclSuccess) fail(state, what());
    return true;
  }
  /// Checks the result of a call that may still be in progress.
  void check(ncclResult_t result, const char* call) const {
    if (result != ncclSuccess && result != ncclInProgress) fail(result, call);
  }
  void begin_finalize() { check(nccl().comm_finalize(comm_), "ncclCommFinalize"); }
  void abort() noexcept;

 private:
  NcclHandle(NcclJob& job, ncclComm_t comm);
  void settle(const char* call);
  [[noreturn]] void fail(ncclResult_t result, const std::string& what) const;

  NcclJob& job_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace concertina
