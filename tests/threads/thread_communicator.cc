#include "tests/threads/thread_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/index.h"
#include "core/log.h"
#include "parallel/comm/work_pool.h"
#include "tests/threads/thread_channel.h"

namespace concertina {
namespace {

// A transfer between threads: the ends of messages that one rank has posted for it.
// Invariants: buffers are only accessed while an end is queued in its channel, so a recycled Work
// has released them; reuse does not allocate.
class ThreadWork final : public Work::State {
 public:
  /// Has room for at most `most` ends.
  ThreadWork(WorkPool<ThreadWork>& pool, ThreadGroup& group, int rank, std::size_t most)
      : pool_(pool), group_(group), rank_(rank), most_(most), ends_(new End[most]) {}

  /// Starts an operation with at most `ends` ends.
  void begin(const char* operation, std::size_t ends);
  void send(Channel& channel, ConstBytes data, int to);
  void receive(Channel& channel, Bytes data, int from);

  /// Throws if sizes differ, a rank has failed, or the peer has returned without posting its end.
  bool test() override;
  void recycle() override;
  int waits_for() const override {
    return done_ < count_ ? group_.members[static_cast<std::size_t>(ends_[done_].peer)] : -1;
  }

 private:
  struct End {
    ChannelTransfer transfer;
    Channel* channel = nullptr;
    int peer = 0;
    const char* direction = "";
  };

  ChannelTransfer& add(Channel& channel, Bytes data, int peer, const char* direction);
  bool finished(End& end) const;
  [[noreturn]] void fail(const End& end, std::string why) const;

  WorkPool<ThreadWork>& pool_;
  ThreadGroup& group_;
  int rank_;
  std::size_t most_;
  std::unique_ptr<End[]> ends_;
  const char* operation_ = "";
  int count_ = 0, done_ = 0;  // posted ends; ends known to be done, in order
};

void ThreadWork::begin(const char* operation, std::size_t ends) {
  if (ends > most_) ends_.reset(new End[most_ = ends]);
  operation_ = operation;
  count_ = done_ = 0;
}

ChannelTransfer& ThreadWork::add(Channel& channel, Bytes data, int peer, const char* direction) {
  End& end = ends_[count_++];
  end.transfer.data = data.data();
  end.transfer.bytes = data.size();
  end.channel = &channel;
  end.peer = peer;
  end.direction = direction;
  return end.transfer;
}

void ThreadWork::send(Channel& channel, ConstBytes data, int to) {
  // The channel only reads the data that is sent.
  channel.send(add(channel, {const_cast<std::byte*>(data.data()), data.size()}, to, "to"));
}

void ThreadWork::receive(Channel& channel, Bytes data, int from) {
  channel.receive(add(channel, data, from, "from"));
}

bool ThreadWork::test() {
  for (; done_ < count_; ++done_)
    if (!finished(ends_[done_])) return false;
  return true;
}

void ThreadWork::recycle() {
  for (; done_ < count_; ++done_) ends_[done_].channel->withdraw(ends_[done_].transfer);
  pool_.give(*this);
}

bool ThreadWork::finished(End& end) const {
  auto status = end.transfer.status.load(std::memory_order_acquire);
  if (status == ChannelTransfer::Status::done) return true;
  const ThreadJob& job = *group_.job;
  const int peer = group_.members[end.peer];
  // A rank that has left posts nothing more, so only then are queued ends lost.
  const bool lost = job.has_left(peer) || job.has_failed();
  if (lost) status = end.channel->settled(end.transfer);
  if (status == ChannelTransfer::Status::done) return true;
  if (status == ChannelTransfer::Status::mismatch)
    fail(end, fmt::format("sizes differ: {} bytes here, {} bytes on rank {}", end.transfer.bytes,
                          end.transfer.peer_bytes, peer));
  if (job.has_failed()) fail(end, job.text());
  if (lost) fail(end, fmt::format("rank {} has returned without the other end", peer));
  return false;
}

void ThreadWork::fail(const End& end, std::string why) const {
  throw_failure(std::move(why), fmt::format("rank {}, {} {} rank {}", group_.members[rank_],
                                            operation_, end.direction, group_.members[end.peer]));
}

/// Works grouped by the number of ends they have room for, so reuse never has to grow one.
struct ThreadPools {
  std::shared_ptr<ThreadGroup> group;
  WorkPool<ThreadWork> single, collective;
  std::size_t most_ends = 0;  // reserved for a collective
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank)
      : group_(group), pools_(std::make_unique<ThreadPools>()), rank_(rank) {
    pools_->group = std::move(group);
  }

  ~ThreadCommunicator() override {
    if (pools_->single.in_use() + pools_->collective.in_use() == 0) return;
    log::error("a communicator was destroyed before its transfers (a bug in concertina)");
    pools_.release();  // leaked, since those Works still point into it
  }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  std::unique_ptr<Communicator> split(int color, int key) override;

  void reserve(std::size_t messages, std::size_t collectives, std::size_t exchanged) override {
    pools_->most_ends = std::max({pools_->most_ends, exchanged, 2 * at(size())});
    pools_->single.reserve(messages, [&] { return make(pools_->single, 1); });
    pools_->collective.reserve(collectives,
                               [&] { return make(pools_->collective, pools_->most_ends); });
  }
  void connect(std::span<const int>) override {}

  Work isend(ConstBytes data, int to) override {
    check_rank(to, "isend");
    ThreadWork& work = take(pools_->single, 1, "isend");
    work.send(group_->point_to_point(rank_, to), data, to);
    return Work(&work);
  }

  Work irecv(Bytes data, int from) override {
    check_rank(from, "irecv");
    ThreadWork& work = take(pools_->single, 1, "irecv");
    work.receive(group_->point_to_point(from, rank_), data, from);
    return Work(&work);
  }

  Work broadcast(Bytes data, int root) override {
    check_rank(root, "broadcast");
    ThreadWork& work = take(pools_->collective, at(size()), "broadcast");
    if (rank_ != root) work.receive(group_->collective(root, rank_), data, root);
    for (int to = 0; rank_ == root && to < size(); ++to)
      if (to != root) work.send(group_->collective(root, to), data, to);
    return Work(&work);
  }

  void barrier() override {
    ThreadWork& work = take(pools_->collective, 2 * at(size()), "barrier");
    for (int r = 0; r < size(); ++r)
      if (r != rank_) work.receive(group_->collective(r, rank_), {}, r);
    for (int r = 0; r < size(); ++r)
      if (r != rank_) work.send(group_->collective(rank_, r), {}, r);
    Work(&work).wait();
  }

  void abort(int code) override {
    const Error error(static_cast<Exit>(code), fmt::format("the job was aborted, code {}", code),
                      fmt::format("rank {}", group_->members[rank_]), {});
    group_->job->fail(group_->members[rank_], std::make_exception_ptr(error));
    throw error;
  }

 private:
  std::unique_ptr<ThreadWork> make(WorkPool<ThreadWork>& pool, std::size_t ends) const {
    return std::make_unique<ThreadWork>(pool, *group_, rank_, ends);
  }

  ThreadWork& take(WorkPool<ThreadWork>& pool, std::size_t ends, const char* operation) {
    const std::size_t room =
        &pool == &pools_->single ? ends : std::max({pools_->most_ends, ends, 2 * at(size())});
    ThreadWork& work = pool.take([&] { return make(pool, room); });
    work.begin(operation, ends);
    return work;
  }

  Work start_exchange(const char* operation, std::span<const Send> sends,
                      std::span<const Receive> receives) override {
    ThreadWork& work = take(pools_->collective, sends.size() + receives.size(), operation);
    for (const auto& [data, from, step] : receives)
      work.receive(group_->collective(from, rank_), data, from);
    for (const auto& [data, to, step] : sends) work.send(group_->collective(rank_, to), data, to);
    return Work(&work);
  }

  std::shared_ptr<ThreadGroup> group_;
  std::unique_ptr<ThreadPools> pools_;
  int rank_;
};

std::unique_ptr<Communicator> ThreadCommunicator::split(int color, int key) {
  struct Wish {
    int color, key;
    const std::shared_ptr<ThreadGroup>* made;  // created by the first rank of each color
  };
  std::vector<Wish> wishes(size());
  std::vector<Bytes> views;
  for (Wish& wish : wishes) views.push_back(std::as_writable_bytes(std::span(&wish, 1)));
  const auto share = [&](const Wish& mine) {
    all_gather(std::as_bytes(std::span(&mine, 1)), views).wait();
  };
  share({color, key, nullptr});

  std::vector<int> order;  // old ranks of the new communicator
  for (int r = 0; r < size(); ++r)
    if (wishes[r].color == color) order.push_back(r);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return wishes[a].key < wishes[b].key; });

  std::shared_ptr<ThreadGroup> group;
  if (color >= 0 && order.front() == rank_) {
    std::vector<int> members;
    for (int r : order) members.push_back(group_->members[r]);
    group = std::make_shared<ThreadGroup>(group_->job, members, group_->delivery);
  }
  share({color, key, &group});
  if (color >= 0 && group == nullptr) group = *wishes[order.front()].made;
  barrier();  // `group` must live until every rank has its share
  if (color < 0) return nullptr;
  const auto me = std::find(order.begin(), order.end(), rank_);
  return std::make_unique<ThreadCommunicator>(std::move(group),
                                              static_cast<int>(me - order.begin()));
}

}  // namespace

void run_threads(int ranks, const std::function<void(Communicator&)>& body, Delivery delivery) {
  CONCERTINA_CHECK(ranks > 0, "{} ranks", ranks);
  std::vector<int> members(ranks);
  for (int r = 0; r < ranks; ++r) members[r] = r;
  const auto job = std::make_shared<ThreadJob>(ranks);
  const auto group = std::make_shared<ThreadGroup>(job, std::move(members), delivery);
  const auto run = [&](int rank) {
    try {
      ThreadCommunicator communicator(group, rank);
      body(communicator);
      job->leave(rank);
    } catch (...) {
      job->fail(rank, std::current_exception());
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (int r = 0; r < ranks; ++r) threads.emplace_back(run, r);
    } catch (...) {  // thread limit: the started ranks must not wait for the others
      job->fail(static_cast<int>(threads.size()), std::current_exception());
    }
  }
  if (job->failure()) std::rethrow_exception(job->failure());
}

}  // namespace concertina
