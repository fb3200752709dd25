// The state that the ranks of one process share: the job's fate and a first-in, first-out channel
// for each ordered pair of ranks. Invariants: at most one side of a channel has transfers queued;
// nobody touches a ChannelTransfer after its status has become final; after warm-up nothing
// allocates.
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
  std::size_t peer_bytes = 0;  // of the other end; valid after a mismatch
  ChannelTransfer* next = nullptr;
  std::atomic<Status> status = Status::done;
};

class Channel {
 public:
  /// The eager limit, as MPI calls it, and how many such messages a channel keeps.
  static constexpr std::size_t kEagerBytes = 4096;
  static constexpr int kEagerMessages = 16;

  void allow_eager() { stored_ = std::make_unique<Stored[]>(kEagerMessages); }
  void send(ChannelTransfer& transfer);
  void receive(ChannelTransfer& transfer);
  /// Forgets `transfer`; afterwards nobody touches it or its buffer.
  void withdraw(ChannelTransfer& transfer);
  /// Its status when no other rank is in the middle of a copy.
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

  /// Queues a copy if there is room for one.
  bool store(const ChannelTransfer& transfer);

  std::mutex mutex_;
  Queue sends_, receives_;
  std::unique_ptr<Stored[]> stored_;  // null: rendezvous only
};

/// All ranks of one run_threads.
class ThreadJob {
 public:
  explicit ThreadJob(int ranks);

  /// Rank `rank` failed; the first failure is the job's.
  void fail(int rank, std::exception_ptr why) noexcept;
  /// Rank `rank` returned: who waits for it waits in vain.
  void leave(int rank) noexcept { left_[rank].store(true, std::memory_order_release); }

  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  bool has_left(int rank) const { return left_[rank].load(std::memory_order_acquire); }
  /// Null while none has failed.
  std::exception_ptr failure() const { return has_failed() ? why_ : nullptr; }
  /// "rank 2 failed: ...", once has_failed().
  const std::string& text() const { return text_; }

 private:
  std::unique_ptr<std::atomic<bool>[]> left_;
  std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr why_;
  std::string text_;
};

/// One communicator as all its ranks see it.
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
