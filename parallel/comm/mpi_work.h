// A transfer over MPI: the requests it consists of, and what to say when one fails.
// Invariants: every request is posted at once, so MPI's own progress suffices; a message of the
// wrong size is an error, not a short read; reuse does not allocate.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/comm/work_pool.h"

namespace concertina {

/// "rank 3" in words that hold for the whole job, and MPI's text for an error code.
std::string mpi_text(int error);

/// What all Works of one communicator share.
struct MpiChannel {
  std::vector<int> world_ranks;  // rank here -> rank in MPI_COMM_WORLD
  int rank = 0;
  std::size_t chunk_bytes = 0;  // longest single MPI message

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
  void send(ConstBytes data, int to);
  void receive(Bytes data, int from);
  void broadcast(Bytes data, int root);
  void barrier();

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
  };

  template <class Post>
  void post(Type type, int peer, std::size_t bytes, const Post& post_chunk);
  bool test_one();
  void finish(int index, int error, const MPI_Status& status);

  WorkPool<MpiWork>& pool_;
  const MpiChannel& channel_;
  const char* operation_ = "";
  MPI_Comm comm_ = MPI_COMM_NULL;
  int open_ = 0;  // requests not yet known to be done
  std::vector<MPI_Request> requests_;
  std::vector<Part> parts_;  // of the same index
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace concertina
