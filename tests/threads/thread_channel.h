// The state shared by the ranks of one process: the job's status, and a FIFO channel for each
// ordered pair of ranks.
// Invariants: at most one side of a channel has transfers queued; nobody accesses a ChannelTransfer
// after its status is final; after warm-up, nothing allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/threads/thread_communicator.h"

namespace concertina {

/// One end of a message. Lives in the Work of the rank that posted it.
struct ChannelTransfer {
  enum class Status { queued, done, mismatch };

  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t peer_bytes = 0;  // bytes of the other end; valid after a mismatch
  ChannelTransfer* next = nullptr;
  std::atomic<Status> status = Status::done;
};

class Channel {
 public:
  /// The eager limit, as MPI calls it, and how many eager messages a channel stores.
  static constexpr std::size_t kEagerBytes = 4096;
  static constexpr int kEagerMessages = 16;

  void allow_eager() { stored_ = std::make_unique<Stored[]>(kEagerMessages); }
  void send(ChannelTransfer& transfer);
  void receive(ChannelTransfer& transfer);
  /// Removes `transfer`; afterwards nobody accesses it or its buffer.
  void withdraw(ChannelTransfer& transfer);
  /// Returns its status when no other rank is copying.
  ChannelTransfer::Status settled(const ChannelTransfer& transfer);

 private:
  struct Queue {
    ChannelTransfer *head = nullptr, *tail = nullptr;
    void push(ChannelTransfer& transfer);
    ChannelTransfer* pop();
    void remove(ChannelTransfer& transfer);
  };
  /// A message that was sent before its receive was posted.
  struct Stored {
    ChannelTransfer transfer;
    std::array<std::byte, kEagerBytes> copy;
  };

  /// Stores a copy if there is room; returns whether there was.
  bool store(const ChannelTransfer& transfer);

  std::mutex mutex_;
  Queue sends_, receives_;
  std::unique_ptr<Stored[]> stored_;  // null with Delivery::rendezvous
};

/// All ranks of one run_threads.
class ThreadJob {
 public:
  explicit ThreadJob(int ranks);

  /// Records that rank `rank` failed; the first failure is the job's.
  void fail(int rank, std::exception_ptr why) noexcept;
  /// Records that rank `rank` returned: nobody may wait for it any longer.
  void leave(int rank) noexcept { left_[rank].store(true, std::memory_order_release); }

  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  bool has_left(int rank) const { return left_[rank].load(std::memory_order_acquire); }
  /// Returns null if no rank has failed.
  std::exception_ptr failure() const { return has_failed() ? why_ : nullptr; }
  /// Returns "rank 2 failed: ..."; valid once has_failed().
  const std::string& text() const { return text_; }

 private:
  std::unique_ptr<std::atomic<bool>[]> left_;
  std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr why_;
  std::string text_;
};

/// One communicator as seen by all its ranks.
struct ThreadGroup {
  ThreadGroup(std::shared_ptr<ThreadJob> job, std::vector<int> members, Delivery delivery);

  int size() const { return static_cast<int>(members.size()); }
  Channel& point_to_point(int from, int to) { return channels[from * size() + to]; }
  Channel& collective(int from, int to) { return channels[(size() + from) * size() + to]; }

  std::shared_ptr<ThreadJob> job;
  std::vector<int> members;  // rank here -> rank in the job
  Delivery delivery;
  std::unique_ptr<Channel[]> channels;
};

}  // namespace concertina
