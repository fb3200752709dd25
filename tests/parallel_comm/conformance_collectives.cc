// Collectives: their results, and that they match only by their order.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "tests/parallel_comm/conformance_room.h"

namespace concertina::test {
namespace {

// recv[r] gets rank r's `mine`; sizes may differ, and recv[rank()] may be `mine` itself.
void all_gather_of_any_sizes(Communicator& comm) {
  const auto bytes = [](int r) { return static_cast<std::size_t>(r * 70001 % 100003); };
  for (const bool in_place : {false, true}) {
    const Buffer mine = message(bytes(comm.rank()), comm.rank(), 0, 3);
    std::vector<Buffer> in;
    for (int r = 0; r < comm.size(); ++r) in.emplace_back(bytes(r));
    if (in_place) in[comm.rank()] = mine;
    const std::vector<Bytes> recv(in.begin(), in.end());
    comm.all_gather(in_place ? ConstBytes(in[comm.rank()]) : ConstBytes(mine), recv).wait();
    for (int r = 0; r < comm.size(); ++r) EXPECT_EQ(in[r], message(bytes(r), r, 0, 3));
  }
}

// The same into blocks of one buffer, with gaps on every other rank.
void all_gather_into_one_memory(Communicator& comm) {
  const std::size_t block = 5000, gap = comm.rank() % 2 == 0 ? 0 : 64;
  Buffer all(at(comm.size()) * (block + gap));
  std::vector<Bytes> recv;
  for (int r = 0; r < comm.size(); ++r)
    recv.push_back(Bytes(all).subspan(at(r) * (block + gap), block));
  for (int round = 0; round < 3; ++round) {
    const Buffer mine = message(block, comm.rank(), 0, round);
    comm.all_gather(mine, recv).wait();
    for (int r = 0; r < comm.size(); ++r) {
      const Bytes got = recv[at(r)];
      EXPECT_EQ(Buffer(got.begin(), got.end()), message(block, r, 0, round)) << "from rank " << r;
    }
  }
}

/// Messages of any sizes, several or none between two ranks, in the order required by exchange().
class Exchange {
 public:
  Exchange(const Communicator& comm, int number) {
    const int me = comm.rank(), size = comm.size();
    for (int step = 1; step < size; ++step) {
      const int from = (me + size - step) % size, to = (me + step) % size;
      for (int i = 0; i < count(me, to, number); ++i)
        out_.push_back({message(bytes(me, to, number + i), me, to, number + i), to});
      for (int i = 0; i < count(from, me, number); ++i) {
        in_.push_back({Buffer(bytes(from, me, number + i)), from});
        expected_.push_back(message(bytes(from, me, number + i), from, me, number + i));
      }
    }
    const auto distance = [size](int from, int to) { return (to - from + size) % size; };
    for (const auto& [data, to] : out_) sends_.push_back({data, to, distance(me, to)});
    for (auto& [data, from] : in_) receives_.push_back({data, from, distance(from, me)});
  }
  Work start(Communicator& comm) const { return comm.exchange(sends_, receives_); }
  void check() const {
    for (std::size_t i = 0; i < in_.size(); ++i)
      EXPECT_TRUE(in_[i].first == expected_[i]) << "from rank " << in_[i].second;
  }

 private:
  static int count(int from, int to, int number) { return (from + 2 * to + number) % 3; }
  static std::size_t bytes(int from, int to, int number) {
    return static_cast<std::size_t>((from * 5 + to * 3 + number) % 4) * 70001;
  }

  std::vector<std::pair<Buffer, int>> out_, in_;
  std::vector<Buffer> expected_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

// Every rank calls exchange(), possibly without messages: many are in progress on two
// communicators, and ranks wait for them in different orders.
void exchanges_under_way(Communicator& comm) {
  constexpr int kExchanges = 12;
  const auto other = comm.split(0, comm.rank());
  std::vector<Exchange> exchanges;
  for (int i = 0; i < 2 * kExchanges; ++i) exchanges.emplace_back(comm, i);
  std::vector<Work> first, second;
  for (int i = 0; i < kExchanges; ++i) {
    first.push_back(exchanges[at(2 * i)].start(comm));
    second.push_back(exchanges[at(2 * i + 1)].start(*other));
  }
  if (comm.rank() % 2 == 1) std::swap(first, second);
  for (std::vector<Work>* works : {&first, &second}) wait_all(*works);
  for (const Exchange& exchange : exchanges) exchange.check();
}

// A rank that waits for an exchange before a split gets it, even if others are already in it.
void exchanges_across_a_split(Communicator& comm) {
  const auto other = comm.split(0, comm.rank());
  std::vector<Exchange> exchanges;
  exchanges.reserve(12);
  std::vector<Work> works;
  for (int i = 0; i < 12; ++i) {
    exchanges.emplace_back(comm, i);
    works.push_back(exchanges.back().start(*other));
  }
  if (comm.rank() == 0) wait_all(works);
  const auto third = comm.split(0, comm.rank());
  wait_all(works);
  for (const Exchange& exchange : exchanges) exchange.check();
}

// Sends and receives, each in ascending order of steps.
void exchanges_by_step(Communicator& comm) {
  if (comm.size() < 3) return;
  Buffer data(4);
  const auto [near, before] = neighbors(comm, 1);
  const auto [far, long_before] = neighbors(comm, 2);
  EXPECT_THROW(comm.exchange(std::vector<Send>{{data, far, 2}, {data, near, 1}}, {}), Error);
  EXPECT_THROW(comm.exchange({}, std::vector<Receive>{{data, long_before, 2}, {data, before, 1}}),
               Error);
  comm.barrier();
}

void broadcast_from_every_root(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root)
    for (std::size_t bytes : {0U, 1U, 4097U, 1000003U}) {
      Buffer data = comm.rank() == root ? message(bytes, root, 0, 11) : Buffer(bytes);
      comm.broadcast(data, root).wait();
      EXPECT_TRUE(data == message(bytes, root, 0, 11)) << bytes << " bytes from rank " << root;
    }
}

// No rank leaves a barrier before the last one has reached it.
void barrier_waits_for_all(Communicator& comm) {
  using Clock = std::chrono::steady_clock;  // shared by all processes of a host
  for (int late = 0; late < comm.size(); ++late) {
    if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto came = Clock::now().time_since_epoch().count();
    comm.barrier();
    const auto left = Clock::now().time_since_epoch().count();
    std::vector<std::int64_t> all(comm.size());
    const std::int64_t mine = came;
    comm.all_gather(bytes_of(mine), views_of(all)).wait();
    EXPECT_GE(left, *std::max_element(all.begin(), all.end()));
  }
}

// Without tags, collectives match only by their order, and never match messages between two ranks.
void collectives_and_messages_apart(Communicator& comm) {
  const auto [to, from] = neighbors(comm);
  int early = -1;
  const int sent = comm.rank();
  Work receive = comm.irecv(bytes_of(early), from);
  std::vector<int> first(comm.size(), -1), second(comm.size(), -1);
  const int one = 100 + comm.rank(), two = 200 + comm.rank();
  int third = comm.rank() == 0 ? 300 : -1;
  Work a = comm.all_gather(bytes_of(one), views_of(first));
  Work b = comm.all_gather(bytes_of(two), views_of(second));
  Work c = comm.broadcast(bytes_of(third), 0);
  comm.barrier();
  c.wait();
  b.wait();
  a.wait();
  EXPECT_FALSE(receive.test()) << "received before it was sent";
  comm.barrier();
  comm.isend(bytes_of(sent), to).wait();
  receive.wait();
  EXPECT_EQ(early, from);
  EXPECT_EQ(third, 300);
  for (int r = 0; r < comm.size(); ++r) {
    EXPECT_EQ(first[r], 100 + r);
    EXPECT_EQ(second[r], 200 + r);
  }
}

}  // namespace

std::vector<Contract> collective_contracts() {
  return {CONTRACT(all_gather_of_any_sizes), CONTRACT(all_gather_into_one_memory),
          CONTRACT(exchanges_under_way),     CONTRACT(exchanges_across_a_split),
          CONTRACT(exchanges_by_step),       CONTRACT(broadcast_from_every_root),
          CONTRACT(barrier_waits_for_all),   CONTRACT(collectives_and_messages_apart)};
}

}  // namespace concertina::test
