#include "parallel/comm/mpi_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "core/model/exchange_order.h"
#include "parallel/comm/mpi_ulfm.h"

namespace concertina {
namespace {

/// Communicators are private duplicates and messages match by order, so one tag suffices.
constexpr int kTag = 0;

}  // namespace

void MpiLines::advance() {
  for (std::size_t i = 0; i < busy_.size();) {
    MpiLine& line = *busy_[i];
    line.advance();
    if (line.works_.empty())
      busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

MpiLine::MpiLine(std::shared_ptr<MpiLines> all) : all_(std::move(all)) {
  all_->busy_.reserve(++all_->lines_);
}

MpiLine::~MpiLine() {
  std::erase(all_->busy_, this);
  --all_->lines_;
}

void MpiLine::push(MpiWork& work) {
  if (works_.empty()) all_->busy_.push_back(this);
  works_.push_back(&work);
  post();
}

void MpiLine::forget(const MpiWork& work) {
  std::erase(works_, &work);
  if (works_.empty()) std::erase(all_->busy_, this);
}

void MpiLine::step_done(std::size_t bytes) {
  --steps_;
  bytes_ -= bytes;
}

void MpiLine::advance() {
  for (MpiWork* work : works_) work->poll();
  std::erase_if(works_, [](const MpiWork* work) { return work->done(); });
  post();
}

void MpiLine::post() {
  for (MpiWork* work : works_)
    while (!work->all_posted()) {
      if (!work->ready() || !may_begin_step(steps_, static_cast<double>(bytes_))) return;
      ++steps_;
      bytes_ += work->post_step();
    }
}

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
  if (loss->expected() && ulfm_lost(error)) loss->leave(std::move(what), std::move(where));
  throw_failure(std::move(what), std::move(where));
}

MpiWork::MpiWork(WorkPool<MpiWork>& pool, const MpiChannel& channel, std::size_t requests)
    : pool_(pool), channel_(channel) {
  requests_.reserve(requests);
  parts_.reserve(requests);
  indices_.resize(requests);
  statuses_.resize(requests);
  planned_.reserve(requests);
  steps_.reserve(requests);
  blocks_.reserve(channel_.world_ranks.size());
  lengths_.reserve(blocks_.capacity());
  offsets_.reserve(blocks_.capacity());
}

void MpiWork::begin(const char* operation, MPI_Comm comm) {
  operation_ = operation;
  comm_ = comm;
  line_ = nullptr;
  requests_.clear();
  parts_.clear();
  planned_.clear();
  steps_.clear();
  blocks_.clear();
  open_ = 0;
  first_ = next_ = 0;
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
    parts_.push_back({type, peer, count, steps_.size() - 1});
    if (!steps_.empty()) ++steps_.back().left;
    ++open_;
    offset += count;
  } while (offset < bytes);
  if (indices_.size() < requests_.size()) {
    indices_.resize(requests_.capacity());
    statuses_.resize(requests_.capacity());
  }
}

void MpiWork::send(ConstBytes data, int to, bool synchronous) {
  const auto call = synchronous ? MPI_Issend : MPI_Isend;
  post(Type::send, to, data.size(), [&](std::size_t offset, int count, MPI_Request* request) {
    return call(data.data() + offset, count, MPI_BYTE, to, kTag, comm_, request);
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

void MpiWork::plan_exchange(std::span<const Send> sends, std::span<const Receive> receives) {
  auto send = sends.begin();
  auto receive = receives.begin();
  while (send != sends.end() || receive != receives.end()) {
    const bool both = send != sends.end() && receive != receives.end();
    const int step = both                  ? std::min(send->step, receive->step)
                     : send != sends.end() ? send->step
                                           : receive->step;
    for (; receive != receives.end() && receive->step == step; ++receive)
      planned_.push_back(
          {Type::receive, receive->from, step, receive->data.data(), receive->data.size(), 0, 0});
    for (; send != sends.end() && send->step == step; ++send)  // MPI only reads it
      planned_.push_back({Type::send, send->to, step, const_cast<std::byte*>(send->data.data()),
                          send->data.size(), 0, 0});
  }
}

void MpiWork::plan_gather(std::span<const Bytes> blocks) {
  blocks_.assign(blocks.begin(), blocks.end());
  const int size = static_cast<int>(blocks.size()), me = channel_.rank;
  for (int i = 0; gather_round(i, size).blocks > 0; ++i) {
    const auto [distance, count] = gather_round(i, size);
    const int from = (me + distance) % size, to = (me + size - distance) % size;
    plan_round(Type::receive, from, i, from, count);
    plan_round(Type::send, to, i, me, count);
  }
}

/// Plans `count` blocks starting with `first`, as two messages if they wrap around the end. Both
/// ranks know this. The blocks of a message are mostly contiguous.
void MpiWork::plan_round(Type type, int peer, int step, int first, int count) {
  const int size = static_cast<int>(blocks_.size()), until_end = std::min(count, size - first);
  planned_.push_back({type, peer, step, nullptr, 0, first, until_end});
  if (until_end < count) planned_.push_back({type, peer, step, nullptr, 0, 0, count - until_end});
}

std::size_t MpiWork::post_step() {
  steps_.emplace_back();
  for (const int step = planned_[next_].step;
       next_ < planned_.size() && planned_[next_].step == step; ++next_)
    post_planned(planned_[next_]);
  return steps_.back().bytes;
}

void MpiWork::post_planned(const Planned& message) {
  if (message.count > 0) return post_blocks(message);
  if (message.type == Type::receive) return receive({message.data, message.bytes}, message.peer);
  // Synchronous: a step ends when its receiver has the message. Otherwise network buffers could
  // absorb it at once, and this rank would run ahead and flood its link until packets are lost.
  steps_.back().bytes += message.bytes;
  send({message.data, message.bytes}, message.peer, /*synchronous=*/true);
}

/// Posts one message even if the blocks are not contiguous: the peer's layout may differ.
void MpiWork::post_blocks(const Planned& message) {
  lengths_.clear();
  offsets_.clear();
  std::size_t bytes = 0;
  const std::byte* end = nullptr;
  for (const Bytes block : std::span(blocks_).subspan(at(message.first), at(message.count))) {
    if (block.empty()) continue;
    if (block.data() == end) {
      lengths_.back() += static_cast<int>(block.size());
    } else {
      lengths_.push_back(static_cast<int>(block.size()));
      MPI_Get_address(block.data(), &offsets_.emplace_back());
    }
    end = block.data() + block.size();
    bytes += block.size();
  }
  const bool send = message.type == Type::send;
  if (send) steps_.back().bytes += bytes;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(static_cast<int>(lengths_.size()), lengths_.data(), offsets_.data(),
                           MPI_BYTE, &type);
  MPI_Type_commit(&type);
  post(message.type, message.peer, bytes, [&](std::size_t, int, MPI_Request* request) {
    return send ? MPI_Isend(MPI_BOTTOM, 1, type, message.peer, kTag, comm_, request)
                : MPI_Irecv(MPI_BOTTOM, 1, type, message.peer, kTag, comm_, request);
  });
  MPI_Type_free(&type);
}

/// Handles the completion of request `index` with `error`.
void MpiWork::finish(std::size_t index, int error, const MPI_Status& status) {
  --open_;
  const Part& part = parts_[index];
  if (error != MPI_SUCCESS) channel_.fail(error, comm_, operation_, part.peer, part.bytes);
  if (line_ != nullptr && --steps_[part.step].left == 0) line_->step_done(steps_[part.step].bytes);
  if (part.type != Type::receive) return;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  if (static_cast<std::size_t>(count) != part.bytes)
    throw_failure(
        fmt::format("message size mismatch: expected {} bytes, received {}", part.bytes, count),
        fmt::format("rank {}, {} from rank {}", channel_.world_ranks[channel_.rank], operation_,
                    channel_.world_ranks[part.peer]));
}

bool MpiWork::test_one() {
  int done = 0;
  MPI_Status status;
  const int error = MPI_Test(&requests_[0], &done, &status);
  if (error != MPI_SUCCESS || done != 0) finish(0, error, status);
  return open_ == 0;
}

void MpiWork::poll() {
  while (first_ < requests_.size() && requests_[first_] == MPI_REQUEST_NULL) ++first_;
  const int count = static_cast<int>(requests_.size() - first_);
  if (count == 0) return;
  int done = 0;
  const int error =
      MPI_Testsome(count, &requests_[first_], &done, indices_.data(), statuses_.data());
  if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS)
    channel_.fail(error, comm_, operation_, -1, 0);
  for (int i = 0; i < done; ++i)
    finish(first_ + at(indices_[i]), error == MPI_SUCCESS ? MPI_SUCCESS : statuses_[i].MPI_ERROR,
           statuses_[i]);
}

bool MpiWork::test() {
  if (channel_.loss->known())
    channel_.loss->leave(
        "ranks of this launch have died",
        fmt::format("rank {}, {}", channel_.world_ranks[channel_.rank], operation_));
  channel_.lines->advance();
  if (line_ != nullptr) return done();
  if (open_ == 0) return true;
  if (requests_.size() == 1) return test_one();
  poll();
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
  if (line_ != nullptr) line_->forget(*this);
  bool stuck = false;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (channel_.loss->left()) {
      channel_.loss->end(requests_[i]);
      stuck = stuck || requests_[i] != MPI_REQUEST_NULL;
      continue;
    }
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
