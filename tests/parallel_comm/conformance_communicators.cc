// Communicators and Works as objects: splits, lifetimes, memory, wrong use.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "tests/parallel_comm/allocation_counter.h"
#include "tests/parallel_comm/conformance_room.h"

namespace concertina::test {
namespace {

// Ranks with equal `color` form one, ordered by (key, rank); a rank with color < 0 receives null.
void split_by_color_and_key(Communicator& comm) {
  const auto part = comm.split(comm.rank() % 2, -comm.rank());
  const int members = (comm.size() + 1 - comm.rank() % 2) / 2;
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->size(), members);
  EXPECT_EQ(part->rank(), members - 1 - comm.rank() / 2);
  std::vector<int> ranks(members, -1);
  const int mine = comm.rank();
  part->all_gather(bytes_of(mine), views_of(ranks)).wait();
  for (int r = 0; r < members; ++r) EXPECT_EQ(ranks[r], (members - 1 - r) * 2 + comm.rank() % 2);

  const auto equal_keys = comm.split(3, 0);
  ASSERT_NE(equal_keys, nullptr);
  EXPECT_EQ(equal_keys->rank(), comm.rank());
  const auto all_but_last = comm.split(comm.rank() == comm.size() - 1 ? -1 : 0, 0);
  EXPECT_EQ(all_but_last == nullptr, comm.rank() == comm.size() - 1);
  if (all_but_last) {
    EXPECT_EQ(all_but_last->size(), comm.size() - 1);
    all_but_last->barrier();
    const auto again = all_but_last->split(all_but_last->rank(), 0);  // split of a split
    EXPECT_EQ(again->size(), 1);
  }
}

// The same pair of ranks may use two communicators: their messages never mix.
void communicators_apart(Communicator& comm) {
  const auto other = comm.split(0, comm.rank());
  const auto [to, from] = neighbors(comm);
  other->connect(std::array{to});
  const int a = 10 + comm.rank(), b = 20 + comm.rank();
  int got_a = -1, got_b = -1;
  std::vector<Work> works;
  works.push_back(comm.isend(bytes_of(a), to));
  works.push_back(other->isend(bytes_of(b), to));
  works.push_back(other->irecv(bytes_of(got_b), from));
  works.push_back(comm.irecv(bytes_of(got_a), from));
  wait_all(works);
  EXPECT_EQ(got_a, 10 + from);
  EXPECT_EQ(got_b, 20 + from);
}

// test() returns true once done, and from then on; a moved Work is pending in one place.
void works_move(Communicator& comm) {
  int in = -1;
  const int out = 42;
  Work receive = comm.irecv(bytes_of(in), comm.rank());
  EXPECT_TRUE(receive.pending());
  Work moved = std::move(receive);
  EXPECT_FALSE(receive.pending());  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_TRUE(receive.test());
  EXPECT_TRUE(moved.pending());
  EXPECT_FALSE(moved.test());
  Work send = comm.isend(bytes_of(out), comm.rank());
  while (!moved.test()) ::sched_yield();
  while (!send.test()) ::sched_yield();
  EXPECT_TRUE(moved.test() && moved.test() && !moved.pending());
  moved.wait();
  EXPECT_EQ(in, 42);
}

// No call allocates after warm-up, as counted on this thread.
void no_allocation_after_warm_up(Communicator& comm) {
  const auto [to, from] = neighbors(comm);
  Buffer out(100000), in(100000), in_parts(8000), shared(50000);
  std::vector<Buffer> blocks(comm.size(), Buffer(1000)), exchanged = blocks, gathered = blocks;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int step = 1; step < comm.size(); ++step) {
    const auto [next, last] = neighbors(comm, step);
    sends.push_back({blocks[next], next, step});
    receives.push_back({exchanged[last], last, step});
  }
  const std::vector<Bytes> gather(gathered.begin(), gathered.end());
  std::vector<Work> works;
  works.reserve(40);
  std::size_t before = 0;
  for (int round = 0; round < 30; ++round) {
    if (round == 5) before = allocations();
    for (int i = 0; i < 8; ++i) {
      works.push_back(comm.isend(ConstBytes(out).subspan(i * 1000, 100 * i), to));
      works.push_back(comm.irecv(Bytes(in_parts).subspan(i * 1000, 100 * i), from));
    }
    works.push_back(comm.isend(out, to));
    works.push_back(comm.irecv(in, from));
    works.push_back(comm.exchange(sends, receives));
    works.push_back(comm.all_gather(blocks[0], gather));
    works.push_back(comm.broadcast(shared, 0));
    wait_all(works);
    comm.barrier();
  }
  EXPECT_EQ(allocations(), before);
}

// Wrong arguments are reported before anything is sent.
void wrong_arguments(Communicator& comm) {
  Buffer data(4);
  EXPECT_THROW(comm.isend(data, comm.size()), Error);
  EXPECT_THROW(comm.irecv(data, -1), Error);
  EXPECT_THROW(comm.broadcast(data, comm.size()), Error);
  EXPECT_THROW(comm.all_gather(data, {}), Error);
  EXPECT_THROW(comm.exchange(std::vector<Send>{{data, comm.size()}}, {}), Error);
  EXPECT_THROW(comm.exchange(std::vector<Send>{{data, comm.rank()}}, {}), Error);
  const std::vector<Bytes> recv(comm.size(), Bytes(data));
  EXPECT_THROW(comm.all_gather(ConstBytes(data).first(3), recv), Error);  // 4 from this rank
  comm.barrier();
}

}  // namespace

std::vector<Contract> contracts() {
  std::vector<Contract> all{CONTRACT(split_by_color_and_key), CONTRACT(communicators_apart),
                            CONTRACT(works_move), CONTRACT(no_allocation_after_warm_up),
                            CONTRACT(wrong_arguments)};
  for (const auto& room : {message_contracts(), collective_contracts()})
    all.insert(all.end(), room.begin(), room.end());
  return all;
}

}  // namespace concertina::test
