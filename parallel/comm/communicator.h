// Message passing, as the intersection of MPI and NCCL: no tags, FIFO per pair of ranks.
// Invariants: buffers stay untouched by the caller until their Work is done; no call allocates
// as long as the Works under way stay within reserve() or an earlier peak; waiting yields the core.
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

/// The memory of a view.
inline Bytes bytes_of(View view) {
  return {static_cast<std::byte*>(view.data), view.bytes()};
}

/// Ranks of the world have died, and the others can go on without them: no operation ends any more
/// but with this, until MpiEnvironment::go_on().
class LostRanks : public Error {
  using Error::Error;
};

/// A listener that learns the peer of a wait once that has become a long one.
class WaitObserver {
 public:
  static constexpr int kUnknown = -1, kNobody = -2;

  virtual ~WaitObserver() = default;
  /// Rank in the world; kUnknown; kNobody: the wait is over.
  virtual void waits_for(int rank) noexcept = 0;
};
/// From now on `observer` is told of the waits of this thread; null: nobody. Returns who was.
WaitObserver* observe_waits(WaitObserver* observer) noexcept;

/// Something under way. Move-only; destroying it unfinished (outside of stack unwinding) is a bug.
class Work {
 public:
  /// The part that an implementation keeps for one Work; lives in a pool of its communicator.
  class State {
   public:
    virtual ~State() = default;
    virtual bool test() = 0;     // progress; true once done
    virtual void recycle() = 0;  // back to the pool
    /// Returns the rank in the world of a peer that is not done; -1: not known.
    virtual int waits_for() const = 0;
  };

  Work() = default;
  explicit Work(State* state) : state_(state) {}
  Work(Work&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Work& operator=(Work&& other) noexcept;
  ~Work();

  bool pending() const { return state_ != nullptr; }
  /// As State::waits_for(); -1 once it is done.
  int waits_for() const { return state_ == nullptr ? -1 : state_->waits_for(); }
  /// Makes progress; true once done (then and for ever after).
  bool test();
  /// Waits until it is done, yielding the core between tests; each time calls `meanwhile`, which
  /// does not touch it. Throws Error if the peer or transport failed.
  void wait(const std::function<void()>& meanwhile = {});

 private:
  State* state_ = nullptr;
};

/// Messages of one exchange; peers are other ranks. Both ends of a message give it the same step:
/// in one step a rank sends to one other at most, and receives from one.
struct Send {
  ConstBytes data;
  int to = 0, step = 0;
};
struct Receive {
  Bytes data;
  int from = 0, step = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Collective over this communicator. Ranks with equal `color` form one, ordered by (key, rank);
  /// color < 0 takes part and gets null.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  /// Room for this many messages (isend, irecv) and collectives under way at the same time, and for
  /// exchanges of so many messages: within it no call allocates. Local; more are allowed, and then
  /// stay.
  virtual void reserve(std::size_t messages, std::size_t collectives,
                       std::size_t exchanged = 0) = 0;
  /// Collective: opens the ways of isend and irecv between this rank and `peers`, and to itself; it
  /// is enough that one end names the other. A transport may refuse messages on other ways.
  virtual void connect(std::span<const int> peers) = 0;

  virtual Work isend(ConstBytes data, int to) = 0;
  virtual Work irecv(Bytes data, int from) = 0;
  /// Starts all of these messages, sends and receives each by ascending step: a transport may post
  /// them step by step. A collective: every rank calls it, maybe with none; what goes between two
  /// ranks matches by its order in the call.
  Work exchange(std::span<const Send> sends, std::span<const Receive> receives);
  /// recv[r] gets rank r's `mine`; recv[rank()] may be `mine` itself.
  Work all_gather(ConstBytes mine, std::span<const Bytes> recv);
  virtual Work broadcast(Bytes data, int root) = 0;
  virtual void barrier() = 0;
  /// Ends every rank of the job with this code.
  [[noreturn]] virtual void abort(int code) = 0;

 protected:
  /// Does what exchange() promises; `operation` is for errors. The lists go when this returns.
  virtual Work start_exchange(const char* operation, std::span<const Send> sends,
                              std::span<const Receive> receives) = 0;
  /// Does what all_gather() promises; this rank's block is in its place. It is an exchange, unless
  /// the transport has something better.
  virtual Work start_all_gather(std::span<const Bytes> blocks);
  /// Copies what goes from this rank to itself, between memory that its views are of.
  virtual void copy_own(ConstBytes from, Bytes to) {
    std::memmove(to.data(), from.data(), from.size());
  }
  /// Throws unless `operation` names a rank that there is.
  void check_rank(int rank, const char* operation) const;

 private:
  std::vector<Send> sends_;  // of start_all_gather: kept for their room
  std::vector<Receive> receives_;
};

}  // namespace concertina
