// A transfer over MPI: its requests, and the error message when one fails.
// Invariants: a message between two ranks is posted at once, so MPI's own progress suffices; an
// exchange is posted step by step by its line; a message of the wrong size is an error rather than
// a short read; reuse does not allocate.
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

/// The lines of this process that have pending work.
class MpiLines {
 public:
  /// Polls all lines and posts the steps that may follow.
  void advance();

 private:
  friend class MpiLine;
  std::vector<MpiLine*> busy_;
  std::size_t lines_ = 0;
};

/// Queue of the exchanges of one communicator, posted step by step.
class MpiLine {
 public:
  explicit MpiLine(std::shared_ptr<MpiLines> all);
  ~MpiLine();
  MpiLine(const MpiLine&) = delete;
  MpiLine& operator=(const MpiLine&) = delete;

  /// Reserves capacity for this many concurrent exchanges.
  void reserve(std::size_t works) { works_.reserve(works); }
  /// Appends a planned exchange to the queue.
  void push(MpiWork& work);
  /// Removes an exchange that will never complete.
  void forget(const MpiWork& work);
  /// Records that a step that sent `bytes` is done.
  void step_done(std::size_t bytes);

 private:
  friend class MpiLines;
  void advance();
  void post();

  std::shared_ptr<MpiLines> all_;
  std::vector<MpiWork*> works_;  // incomplete, in the order of the calls
  int steps_ = 0;                // pending
  std::size_t bytes_ = 0;        // sent by the pending steps
};

/// Returns MPI's text for an error code, with ranks numbered as in the whole job.
std::string mpi_text(int error);

/// State shared by all Works of one communicator.
struct MpiChannel {
  std::vector<int> world_ranks;  // local rank -> world rank
  int rank = 0;
  std::size_t chunk_bytes = 0;      // largest single MPI message
  std::shared_ptr<MpiLines> lines;  // shared by the job
  std::shared_ptr<MpiLoss> loss;    // shared by the world

  /// Throws MPI's error for `operation` with `peer` (-1: all ranks).
  [[noreturn]] void fail(int error, MPI_Comm comm, const char* operation, int peer,
                         std::size_t bytes) const;
  /// Calls fail() unless `error` is MPI_SUCCESS.
  void check(int error, MPI_Comm comm, const char* operation) const {
    if (error != MPI_SUCCESS) fail(error, comm, operation, -1, 0);
  }
};

class MpiWork final : public Work::State {
 public:
  MpiWork(WorkPool<MpiWork>& pool, const MpiChannel& channel, std::size_t requests);

  void begin(const char* operation, MPI_Comm comm);
  /// Messages longer than a chunk are split into several, first in, first out.
  /// `synchronous`: the send completes once its receiver has begun to receive.
  void send(ConstBytes data, int to, bool synchronous = false);
  void receive(Bytes data, int from);
  void broadcast(Bytes data, int root);
  void barrier();
  /// Plans the messages of an exchange for a line, step by step.
  void plan_exchange(std::span<const Send> sends, std::span<const Receive> receives);
  /// Plans an all-gather by recursive doubling for a line, with `blocks[r]` from rank r.
  void plan_gather(std::span<const Bytes> blocks);

  // Called by the line.
  bool done() const { return next_ == planned_.size() && open_ == 0; }
  bool all_posted() const { return next_ == planned_.size(); }
  /// Whether the next step does not depend on pending requests.
  bool ready() const { return blocks_.empty() || open_ == 0; }
  /// Posts the next step and returns the number of bytes it sends.
  std::size_t post_step();
  /// Polls the pending requests.
  void poll();
  void join(MpiLine& line) { line_ = &line; }

  bool test() override;
  /// If unfinished, cancels what it can. Collectives cannot be cancelled, so their state does not
  /// return to the pool.
  void recycle() override;
  /// Prefers a pending receive over a pending send or collective.
  int waits_for() const override;

 private:
  enum class Type { send, receive, collective };
  struct Part {
    Type type;
    int peer;
    std::size_t bytes;
    std::size_t step;  // index in steps_
  };
  /// A message to post: `bytes` at `data`, or `count` blocks starting with block `first`.
  struct Planned {
    Type type;
    int peer, step;
    std::byte* data;
    std::size_t bytes;
    int first, count;
  };
  struct Step {
    int left = 0;           // pending requests
    std::size_t bytes = 0;  // sent in this step
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
  MpiLine* line_ = nullptr;       // posts the work step by step; null for single messages
  int open_ = 0;                  // requests not known to be done
  std::size_t first_ = 0;         // first request that may be pending
  std::size_t next_ = 0;          // index of the next planned message
  std::vector<Planned> planned_;  // in ascending order of steps
  std::vector<Step> steps_;       // already posted
  std::vector<Bytes> blocks_;     // blocks of a gather, by rank
  std::vector<int> lengths_;      // lengths in a datatype, like offsets_
  std::vector<MPI_Aint> offsets_;
  std::vector<MPI_Request> requests_;
  std::vector<Part> parts_;  // parallel to requests_
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace concertina
