#include "parallel/comm/mpi_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/log.h"
#include "parallel/comm/mpi_ulfm.h"

namespace concertina {
namespace {

/// Communicators are duplicates of ours alone and messages match by order, so one tag does.
constexpr int kTag = 0;

}  // namespace

std::string mpi_text(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS)
    return fmt::format("MPI error {}", error);
  return std::string(text, length);
}

void MpiChannel::fail(int error, MPI_Comm comm, const char* operation, int peer,
                      std::size_t bytes) const {
  std::string what = fmt::format("{} failed: {}", operation, mpi_text(error));
  const std::string dead = ulfm_failed_ranks(comm, error);
  if (!dead.empty()) what += "; dead: " + dead;
  std::string where = fmt::format("rank {}, {}", world_ranks[rank], operation);
  if (peer >= 0) where += fmt::format(" of {} bytes with rank {}", bytes, world_ranks[peer]);
  throw_failure(std::move(what), std::move(where));
}

MpiWork::MpiWork(WorkPool<MpiWork>& pool, const MpiChannel& channel, std::size_t requests)
    : pool_(pool), channel_(channel) {
  requests_.reserve(requests);
  parts_.reserve(requests);
  indices_.resize(requests);
  statuses_.resize(requests);
}

void MpiWork::begin(const char* operation, MPI_Comm comm) {
  operation_ = operation;
  comm_ = comm;
  requests_.clear();
  parts_.clear();
  open_ = 0;
}

/// Calls `post_chunk(offset, count, request)` for each chunk; an empty message is one chunk.
template <class Post>
void MpiWork::post(Type type, int peer, std::size_t bytes, const Post& post_chunk) {
  std::size_t offset = 0;
  do {
    const std::size_t count = std::min(bytes - offset, channel_.chunk_bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = post_chunk(offset, static_cast<int>(count), &request);
    if (error != MPI_SUCCESS) channel_.fail(error, comm_, operation_, peer, bytes);
    requests_.push_back(request);
    parts_.push_back({type, peer, count});
    ++open_;
    offset += count;
  } while (offset < bytes);
  if (indices_.size() < requests_.size()) {
    indices_.resize(requests_.capacity());
    statuses_.resize(requests_.capacity());
  }
}

void MpiWork::send(ConstBytes data, int to) {
  post(Type::send, to, data.size(), [&](std::size_t offset, int count, MPI_Request* request) {
    return MPI_Isend(data.data() + offset, count, MPI_BYTE, to, kTag, comm_, request);
  });
}

void MpiWork::receive(Bytes data, int from) {
  post(Type::receive, from, data.size(), [&](std::size_t offset, int count, MPI_Request* request) {
    return MPI_Irecv(data.data() + offset, count, MPI_BYTE, from, kTag, comm_, request);
  });
}

void MpiWork::broadcast(Bytes data, int root) {
  post(Type::collective, root, data.size(),
       [&](std::size_t offset, int count, MPI_Request* request) {
         return MPI_Ibcast(data.data() + offset, count, MPI_BYTE, root, comm_, request);
       });
}

void MpiWork::barrier() {
  post(Type::collective, -1, 0,
       [&](std::size_t, int, MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
}

/// Request `index` has completed with `error`.
void MpiWork::finish(int index, int error, const MPI_Status& status) {
  --open_;
  const Part& part = parts_[index];
  if (error != MPI_SUCCESS) channel_.fail(error, comm_, operation_, part.peer, part.bytes);
  if (part.type != Type::receive) return;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  if (static_cast<std::size_t>(count) != part.bytes)
    throw_failure(fmt::format("sizes differ: {} bytes wanted, {} bytes came", part.bytes, count),
                  fmt::format("rank {}, {} from rank {}", channel_.world_ranks[channel_.rank],
                              operation_, channel_.world_ranks[part.peer]));
}

bool MpiWork::test_one() {
  int done = 0;
  MPI_Status status;
  const int error = MPI_Test(&requests_[0], &done, &status);
  if (error != MPI_SUCCESS || done != 0) finish(0, error, status);
  return open_ == 0;
}

bool MpiWork::test() {
  if (open_ == 0) return true;
  if (requests_.size() == 1) return test_one();
  int done = 0;
  const int error = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done,
                                 indices_.data(), statuses_.data());
  if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS)
    channel_.fail(error, comm_, operation_, -1, 0);
  for (int i = 0; i < done; ++i)
    finish(indices_[i], error == MPI_SUCCESS ? MPI_SUCCESS : statuses_[i].MPI_ERROR, statuses_[i]);
  return open_ == 0;
}

int MpiWork::waits_for() const {
  int peer = -1;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || parts_[i].peer < 0) continue;
    peer = parts_[i].peer;
    if (parts_[i].type == Type::receive) break;
  }
  return peer < 0 || peer == channel_.rank ? -1 : channel_.world_ranks[peer];
}

void MpiWork::recycle() {
  bool stuck = false;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (parts_[i].type == Type::collective) {
      stuck = true;
      continue;
    }
    if (parts_[i].type == Type::receive) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  if (!stuck) pool_.give(*this);
}

}  // namespace concertina
