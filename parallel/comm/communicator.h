// Message passing, as the intersection of MPI and NCCL: no tags, FIFO per pair of ranks.
// Invariants: the caller leaves a buffer untouched until its Work is done; no call allocates as
// long as the pending Works stay within reserve() or an earlier peak; waiting yields the core.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"

namespace concertina {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/// Returns the memory of a view as bytes.
inline Bytes bytes_of(View view) {
  return {static_cast<std::byte*>(view.data), view.bytes()};
}

/// Ranks of the world have died, and the surviving ranks can continue without them. Every operation
/// throws this until MpiEnvironment::go_on() is called.
class LostRanks : public Error {
  using Error::Error;
};

/// Observer that learns which peer a thread waits for, once the wait becomes long.
class WaitObserver {
 public:
  static constexpr int kUnknown = -1, kNobody = -2;

  virtual ~WaitObserver() = default;
  /// `rank` is a rank in the world, kUnknown, or kNobody when the wait is over.
  virtual void waits_for(int rank) noexcept = 0;
};
/// Sets the observer of this thread's waits (null: none) and returns the previous one.
WaitObserver* observe_waits(WaitObserver* observer) noexcept;

/// A pending operation. Move-only. Destroying it unfinished is a bug, except while unwinding.
class Work {
 public:
  /// State of one Work, owned by the implementation and stored in a pool of its communicator.
  class State {
   public:
    virtual ~State() = default;
    virtual bool test() = 0;     // makes progress; returns true once done
    virtual void recycle() = 0;  // returns the state to the pool
    /// Returns the world rank of a peer that this operation still waits for, or -1 if unknown.
    virtual int waits_for() const = 0;
  };

  Work() = default;
  explicit Work(State* state) : state_(state) {}
  Work(Work&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Work& operator=(Work&& other) noexcept;
  ~Work();

  bool pending() const { return state_ != nullptr; }
  /// Same as State::waits_for(), or -1 once the Work is done.
  int waits_for() const { return state_ == nullptr ? -1 : state_->waits_for(); }
  /// Makes progress. Returns true once the Work is done, and on every later call.
  bool test();
  /// Waits until the Work is done, yielding the core between tests. Calls `meanwhile`, which must
  /// not touch this Work, after each test. Throws Error if the peer or transport failed.
  void wait(const std::function<void()>& meanwhile = {});

 private:
  State* state_ = nullptr;
};

/// Messages of one exchange. Peers are other ranks. Both ends of a message use the same step. In
/// one step, a rank sends to at most one rank and receives from at most one.
struct Send {
  ConstBytes data;
  int to = 0, step = 0;
};
struct Receive {
  Bytes data;
  int from = 0, step = 0;
};

/// Packs sets of ranks into rounds, each for one split(): a set is in the first round in which it
/// shares no rank with an earlier set. Sets and rounds keep the order of `sets`.
std::vector<std::vector<std::vector<int>>> disjoint_rounds(
    const std::vector<std::vector<int>>& sets);

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Collective over this communicator. Ranks with equal `color` form a new communicator, ordered
  /// by (key, rank). A rank with color < 0 participates and receives null.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  /// Reserves capacity for this many concurrent messages (isend, irecv), concurrent collectives and
  /// messages per exchange. Calls within this capacity do not allocate; larger ones grow it. Local.
  virtual void reserve(std::size_t messages, std::size_t collectives,
                       std::size_t exchanged = 0) = 0;
  /// Opens channels for isend and irecv between this rank and `peers`, and to itself. It is enough
  /// if one end names the other. A transport may reject messages on other channels. Collective.
  virtual void connect(std::span<const int> peers) = 0;

  virtual Work isend(ConstBytes data, int to) = 0;
  virtual Work irecv(Bytes data, int from) = 0;
  /// Starts these messages, with sends and receives each in ascending order of steps; a transport
  /// may post them step by step. Collective: every rank calls it, possibly without messages.
  /// Messages between two ranks match by their order in the call.
  Work exchange(std::span<const Send> sends, std::span<const Receive> receives);
  /// Stores rank r's `mine` in recv[r]; recv[rank()] may be `mine` itself.
  Work all_gather(ConstBytes mine, std::span<const Bytes> recv);
  virtual Work broadcast(Bytes data, int root) = 0;
  virtual void barrier() = 0;
  /// Terminates all ranks of the job with this exit code.
  [[noreturn]] virtual void abort(int code) = 0;

 protected:
  /// Implements exchange(). `operation` is for error messages. The spans are valid only during the
  /// call.
  virtual Work start_exchange(const char* operation, std::span<const Send> sends,
                              std::span<const Receive> receives) = 0;
  /// Implements all_gather(); this rank's block is already in place. The default is an exchange.
  virtual Work start_all_gather(std::span<const Bytes> blocks);
  /// Copies this rank's block to its place in the result, both in this communicator's memory.
  virtual void copy_own(ConstBytes from, Bytes to) {
    std::memmove(to.data(), from.data(), from.size());
  }
  /// Throws unless `rank` is a valid rank; `operation` is for the error message.
  void check_rank(int rank, const char* operation) const;

 private:
  std::vector<Send> sends_;  // for start_all_gather, kept to avoid allocation
  std::vector<Receive> receives_;
};

}  // namespace concertina
