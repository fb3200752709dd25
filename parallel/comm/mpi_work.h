// A transfer over MPI: the requests it consists of, and what to say when one fails.
// Invariants: a message between two ranks is posted at once, so MPI's own progress suffices; an
// exchange is posted step by step, by its line; a message of the wrong size is an error, not a
// short read; reuse does not allocate.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/comm/mpi_loss.h"
#include "parallel/comm/work_pool.h"

namespace concertina {

class MpiLine;
class MpiWork;

/// The lines of this process that have something to do.
class MpiLines {
 public:
  /// Takes note of what is done, in every line, and posts what may follow.
  void advance();

 private:
  friend class MpiLine;
  std::vector<MpiLine*> busy_;
  std::size_t lines_ = 0;
};

class MpiLine {
 public:
  explicit MpiLine(std::shared_ptr<MpiLines> all);
  ~MpiLine();
  MpiLine(const MpiLine&) = delete;
  MpiLine& operator=(const MpiLine&) = delete;

  /// Room for this many exchanges at the same time.
  void reserve(std::size_t works) { works_.reserve(works); }
  /// A planned exchange goes last in the line.
  void push(MpiWork& work);
  /// It will never end.
  void forget(const MpiWork& work);
  /// A step that sent `bytes` is done.
  void step_done(std::size_t bytes);

 private:
  friend class MpiLines;
  void advance();
  void post();

  std::shared_ptr<MpiLines> all_;
  std::vector<MpiWork*> works_;  // not done, in the order of the calls
  int steps_ = 0;                // under way
  std::size_t bytes_ = 0;        // that they send
};

/// "rank 3" in words that hold for the whole job, and MPI's text for an error code.
std::string mpi_text(int error);

/// The part that all Works of one communicator share.
struct MpiChannel {
  std::vector<int> world_ranks;  // rank here -> rank in the world
  int rank = 0;
  std::size_t chunk_bytes = 0;      // longest single MPI message
  std::shared_ptr<MpiLines> lines;  // of the job
  std::shared_ptr<MpiLoss> loss;    // of the world

  /// Throws what MPI reported for `operation` with `peer` (-1: with all of them).
  [[noreturn]] void fail(int error, MPI_Comm comm, const char* operation, int peer,
                         std::size_t bytes) const;
  /// The same if `error` is one.
  void check(int error, MPI_Comm comm, const char* operation) const {
    if (error != MPI_SUCCESS) fail(error, comm, operation, -1, 0);
  }
};

class MpiWork final : public Work::State {
 public:
  MpiWork(WorkPool<MpiWork>& pool, const MpiChannel& channel, std::size_t requests);

  void begin(const char* operation, MPI_Comm comm);
  /// Messages longer than a chunk are several, first in, first out.
  /// `synchronous`: the send is done when its receiver has begun to receive.
  void send(ConstBytes data, int to, bool synchronous = false);
  void receive(Bytes data, int from);
  void broadcast(Bytes data, int root);
  void barrier();
  /// Plans the messages of an exchange for a line, step by step.
  void plan_exchange(std::span<const Send> sends, std::span<const Receive> receives);
  /// Plans an all-gather by doubling for a line, `blocks[r]` from rank r.
  void plan_gather(std::span<const Bytes> blocks);

  // What its line does.
  bool done() const { return next_ == planned_.size() && open_ == 0; }
  bool all_posted() const { return next_ == planned_.size(); }
  /// Whether the next step needs nothing that is still to come.
  bool ready() const { return blocks_.empty() || open_ == 0; }
  /// Posts the next step; bytes that it sends.
  std::size_t post_step();
  /// Takes note of what is done.
  void poll();
  void join(MpiLine& line) { line_ = &line; }

  bool test() override;
  /// Unfinished: cancels what can be cancelled. Collectives cannot: the state stays out of the
  /// pool.
  void recycle() override;
  /// A receive that is not done, else a send or collective that is not.
  int waits_for() const override;

 private:
  enum class Type { send, receive, collective };
  struct Part {
    Type type;
    int peer;
    std::size_t bytes;
    std::size_t step;  // index in steps_
  };
  /// A message to post: `bytes` from `data` on, or `count` blocks from block `first` on.
  struct Planned {
    Type type;
    int peer, step;
    std::byte* data;
    std::size_t bytes;
    int first, count;
  };
  struct Step {
    int left = 0;           // requests
    std::size_t bytes = 0;  // that it sends
  };

  template <class Post>
  void post(Type type, int peer, std::size_t bytes, const Post& post_chunk);
  void plan_round(Type type, int peer, int step, int first, int count);
  void post_planned(const Planned& message);
  void post_blocks(const Planned& message);
  bool test_one();
  void finish(std::size_t index, int error, const MPI_Status& status);

  WorkPool<MpiWork>& pool_;
  const MpiChannel& channel_;
  const char* operation_ = "";
  MPI_Comm comm_ = MPI_COMM_NULL;
  MpiLine* line_ = nullptr;       // that posts it step by step
  int open_ = 0;                  // requests not yet known to be done
  std::size_t first_ = 0;         // request that may be open
  std::size_t next_ = 0;          // planned message to post
  std::vector<Planned> planned_;  // in ascending order of steps
  std::vector<Step> steps_;       // posted ones
  std::vector<Bytes> blocks_;     // of a gather, by rank
  std::vector<int> lengths_;      // of a datatype
  std::vector<MPI_Aint> offsets_;
  std::vector<MPI_Request> requests_;
  std::vector<Part> parts_;  // of the same index
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace concertina
