#include "tests/parallel_comm/conformance.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>

#include "core/error.h"
#include "tests/parallel_comm/allocation_counter.h"

namespace concertina::test {
namespace {

using Buffer = std::vector<std::byte>;

/// Bytes that tell which message they belong to.
Buffer message(std::size_t bytes, int from, int to, int number) {
  Buffer data(bytes);
  std::uint32_t x = static_cast<std::uint32_t>(from * 1009 + to * 9176 + number * 31337 + 1);
  for (std::byte& b : data) {
    x = x * 1664525U + 1013904223U;
    b = static_cast<std::byte>(x >> 24);
  }
  return data;
}

void wait_all(std::vector<Work>& works) {
  for (Work& work : works) work.wait();
  works.clear();
}

// "FIFO per pair of ranks", a rank with itself included, whatever the sizes and in whatever order
// one waits.
void fifo_per_pair(Communicator& comm) {
  constexpr int kMessages = 24;
  const auto size_of = [](int n) { return static_cast<std::size_t>(n * 977 % 20011); };
  const int me = comm.rank();
  std::vector<Buffer> out, in;
  std::vector<Work> works;
  out.reserve(kMessages * comm.size());
  in.reserve(kMessages * comm.size());
  for (int n = 0; n < kMessages; ++n)
    for (int peer = 0; peer < comm.size(); ++peer) {
      works.push_back(comm.isend(out.emplace_back(message(size_of(n), me, peer, n)), peer));
      works.push_back(comm.irecv(in.emplace_back(size_of(n)), peer));
    }
  std::reverse(works.begin(), works.end());
  wait_all(works);
  for (int n = 0; n < kMessages; ++n)
    for (int peer = 0; peer < comm.size(); ++peer)
      EXPECT_EQ(in[n * comm.size() + peer], message(size_of(n), peer, me, n))
          << "message " << n << " from rank " << peer << " to rank " << me;
}

// An empty message is a message: it takes its place in the order.
void empty_messages(Communicator& comm) {
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  const Buffer out = message(5, comm.rank(), next, 0);
  Buffer in(5);
  std::vector<Work> works;
  works.push_back(comm.irecv(Bytes(), before));
  works.push_back(comm.irecv(in, before));
  works.push_back(comm.irecv(Bytes(), before));
  works.push_back(comm.isend(ConstBytes(), next));
  works.push_back(comm.isend(out, next));
  works.push_back(comm.isend(ConstBytes(), next));
  wait_all(works);
  EXPECT_EQ(in, message(5, before, comm.rank(), 0));
}

// A rank may send to itself; the two ends are two Works as always.
void send_to_oneself(Communicator& comm) {
  for (std::size_t bytes : {1U, 100U, 300000U}) {
    const Buffer out = message(bytes, comm.rank(), comm.rank(), 7);
    Buffer in(bytes);
    Work send = comm.isend(out, comm.rank());
    Work receive = comm.irecv(in, comm.rank());
    receive.wait();
    send.wait();
    EXPECT_EQ(in, out);
  }
}

// Long messages in both directions at once: nobody needs to be first.
void opposite_directions(Communicator& comm) {
  constexpr std::size_t kBytes = 3 << 20;
  for (int distance = 1; distance < comm.size(); ++distance) {
    const int to = (comm.rank() + distance) % comm.size();
    const int from = (comm.rank() + comm.size() - distance) % comm.size();
    const Buffer out = message(kBytes, comm.rank(), to, 0);
    Buffer in(kBytes);
    Work send = comm.isend(out, to);
    Work receive = comm.irecv(in, from);
    send.wait();
    receive.wait();
    EXPECT_TRUE(in == message(kBytes, from, comm.rank(), 0)) << "from rank " << from;
  }
}

// Any number of Works may be under way.
void many_outstanding(Communicator& comm) {
  constexpr int kMessages = 2000;
  const int to = (comm.rank() + 1) % comm.size();
  const int from = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<int> out(kMessages), in(kMessages, -1);
  std::iota(out.begin(), out.end(), comm.rank() * kMessages);
  std::vector<Work> works;
  for (int& value : in)
    works.push_back(comm.irecv(std::as_writable_bytes(std::span(&value, 1)), from));
  for (const int& value : out) works.push_back(comm.isend(std::as_bytes(std::span(&value, 1)), to));
  wait_all(works);
  for (int n = 0; n < kMessages; ++n) ASSERT_EQ(in[n], from * kMessages + n);
}

// Random matched traffic, posted and awaited in random order, arrives.
void random_traffic(Communicator& comm) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);  // the same program on every rank
    struct Sent {
      int from, to;
      Buffer data, received;
    };
    std::vector<Sent> program;
    for (int n = 0; n < 60; ++n) {
      const int from = static_cast<int>(random() % comm.size());
      const int to = static_cast<int>(random() % comm.size());
      const std::size_t bytes = random() % 4 == 0 ? random() % 100000 : random() % 100;
      program.push_back({from, to, message(bytes, from, to, n), Buffer(bytes)});
    }
    std::vector<Work> works;
    for (Sent& sent : program) {
      if (sent.to == comm.rank()) works.push_back(comm.irecv(sent.received, sent.from));
      if (sent.from == comm.rank()) works.push_back(comm.isend(sent.data, sent.to));
    }
    std::mt19937 own(seed * 100 + comm.rank());
    std::shuffle(works.begin(), works.end(), own);
    wait_all(works);
    for (const Sent& sent : program)
      if (sent.to == comm.rank()) {
        EXPECT_TRUE(sent.data == sent.received) << "seed " << seed << " from rank " << sent.from;
      }
  }
}

// "send[r] goes to rank r's recv[our rank]; sizes must match pairwise and may be 0."
void all_to_all_of_any_sizes(Communicator& comm) {
  const auto bytes = [](int from, int to, int round) {
    return static_cast<std::size_t>((from * 5 + to * 3 + round) % 4 * 12345);
  };
  for (int round = 0; round < 4; ++round) {
    std::vector<Buffer> out, in;
    for (int r = 0; r < comm.size(); ++r) {
      out.push_back(message(bytes(comm.rank(), r, round), comm.rank(), r, round));
      in.emplace_back(bytes(r, comm.rank(), round));
    }
    const std::vector<ConstBytes> send(out.begin(), out.end());
    const std::vector<Bytes> recv(in.begin(), in.end());
    comm.all_to_all(send, recv).wait();
    for (int r = 0; r < comm.size(); ++r)
      EXPECT_EQ(in[r], message(bytes(r, comm.rank(), round), r, comm.rank(), round));
  }
}

// "recv[r] gets rank r's `mine`", of unequal sizes, "recv[rank()] may be `mine` itself".
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

void broadcast_from_every_root(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root)
    for (std::size_t bytes : {0U, 1U, 4097U, 1000003U}) {
      Buffer data = comm.rank() == root ? message(bytes, root, 0, 11) : Buffer(bytes);
      comm.broadcast(data, root).wait();
      EXPECT_TRUE(data == message(bytes, root, 0, 11)) << bytes << " bytes from rank " << root;
    }
}

// "no tags": collectives match by their order alone, never with messages between two ranks.
void collectives_and_messages_apart(Communicator& comm) {
  const int to = (comm.rank() + 1) % comm.size();
  const int from = (comm.rank() + comm.size() - 1) % comm.size();
  int early = -1;
  const int sent = comm.rank();
  Work receive = comm.irecv(std::as_writable_bytes(std::span(&early, 1)), from);
  std::vector<int> first(comm.size(), -1), second(comm.size(), -1);
  std::vector<Bytes> first_views, second_views;
  for (int& value : first) first_views.push_back(std::as_writable_bytes(std::span(&value, 1)));
  for (int& value : second) second_views.push_back(std::as_writable_bytes(std::span(&value, 1)));
  const int one = 100 + comm.rank(), two = 200 + comm.rank();
  int third = comm.rank() == 0 ? 300 : -1;
  Work a = comm.all_gather(std::as_bytes(std::span(&one, 1)), first_views);
  Work b = comm.all_gather(std::as_bytes(std::span(&two, 1)), second_views);
  Work c = comm.broadcast(std::as_writable_bytes(std::span(&third, 1)), 0);
  comm.barrier();
  c.wait();
  b.wait();
  a.wait();
  EXPECT_FALSE(receive.test()) << "before it was sent";
  comm.barrier();
  comm.isend(std::as_bytes(std::span(&sent, 1)), to).wait();
  receive.wait();
  EXPECT_EQ(early, from);
  EXPECT_EQ(third, 300);
  for (int r = 0; r < comm.size(); ++r) {
    EXPECT_EQ(first[r], 100 + r);
    EXPECT_EQ(second[r], 200 + r);
  }
}

// No rank leaves a barrier before the last has come.
void barrier_waits_for_all(Communicator& comm) {
  using Clock = std::chrono::steady_clock;  // one for all processes of a host
  for (int late = 0; late < comm.size(); ++late) {
    if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto came = Clock::now().time_since_epoch().count();
    comm.barrier();
    const auto left = Clock::now().time_since_epoch().count();
    std::vector<std::int64_t> all(comm.size());
    std::vector<Bytes> views;
    for (auto& time : all) views.push_back(std::as_writable_bytes(std::span(&time, 1)));
    const std::int64_t mine = came;
    comm.all_gather(std::as_bytes(std::span(&mine, 1)), views).wait();
    EXPECT_GE(left, *std::max_element(all.begin(), all.end()));
  }
}

// "Ranks with equal `color` form one, ordered by (key, rank); color < 0 takes part and gets null."
void split_by_color_and_key(Communicator& comm) {
  const auto part = comm.split(comm.rank() % 2, -comm.rank());
  const int members = (comm.size() + 1 - comm.rank() % 2) / 2;
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->size(), members);
  EXPECT_EQ(part->rank(), members - 1 - comm.rank() / 2);
  std::vector<int> ranks(members, -1);
  std::vector<Bytes> views;
  for (int& rank : ranks) views.push_back(std::as_writable_bytes(std::span(&rank, 1)));
  const int mine = comm.rank();
  part->all_gather(std::as_bytes(std::span(&mine, 1)), views).wait();
  for (int r = 0; r < members; ++r) EXPECT_EQ(ranks[r], (members - 1 - r) * 2 + comm.rank() % 2);

  const auto equal_keys = comm.split(3, 0);
  ASSERT_NE(equal_keys, nullptr);
  EXPECT_EQ(equal_keys->rank(), comm.rank());
  const auto all_but_last = comm.split(comm.rank() == comm.size() - 1 ? -1 : 0, 0);
  EXPECT_EQ(all_but_last == nullptr, comm.rank() == comm.size() - 1);
  if (all_but_last) {
    EXPECT_EQ(all_but_last->size(), comm.size() - 1);
    all_but_last->barrier();
    const auto again = all_but_last->split(all_but_last->rank(), 0);  // of a part
    EXPECT_EQ(again->size(), 1);
  }
}

// The same pair of ranks may talk over two communicators: messages never cross.
void communicators_apart(Communicator& comm) {
  const auto other = comm.split(0, comm.rank());
  const int to = (comm.rank() + 1) % comm.size();
  const int from = (comm.rank() + comm.size() - 1) % comm.size();
  const int a = 10 + comm.rank(), b = 20 + comm.rank();
  int got_a = -1, got_b = -1;
  std::vector<Work> works;
  works.push_back(comm.isend(std::as_bytes(std::span(&a, 1)), to));
  works.push_back(other->isend(std::as_bytes(std::span(&b, 1)), to));
  works.push_back(other->irecv(std::as_writable_bytes(std::span(&got_b, 1)), from));
  works.push_back(comm.irecv(std::as_writable_bytes(std::span(&got_a, 1)), from));
  wait_all(works);
  EXPECT_EQ(got_a, 10 + from);
  EXPECT_EQ(got_b, 20 + from);
}

// "true once done (then and for ever after)"; a Work moves, and is pending in one place.
void works_move(Communicator& comm) {
  int in = -1;
  const int out = 42;
  Work receive = comm.irecv(std::as_writable_bytes(std::span(&in, 1)), comm.rank());
  EXPECT_TRUE(receive.pending());
  Work moved = std::move(receive);
  EXPECT_FALSE(receive.pending());  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_TRUE(receive.test());
  EXPECT_TRUE(moved.pending());
  EXPECT_FALSE(moved.test());
  Work send = comm.isend(std::as_bytes(std::span(&out, 1)), comm.rank());
  while (!moved.test()) ::sched_yield();
  while (!send.test()) ::sched_yield();
  EXPECT_TRUE(moved.test() && moved.test() && !moved.pending());
  moved.wait();
  EXPECT_EQ(in, 42);
}

// "after warm-up no call allocates": counted on this thread.
void no_allocation_after_warm_up(Communicator& comm) {
  const int to = (comm.rank() + 1) % comm.size();
  const int from = (comm.rank() + comm.size() - 1) % comm.size();
  Buffer out(100000), in(100000), in_parts(8000), shared(50000);
  std::vector<Buffer> blocks(comm.size(), Buffer(1000)), exchanged = blocks, gathered = blocks;
  const std::vector<ConstBytes> send(blocks.begin(), blocks.end());
  const std::vector<Bytes> exchange(exchanged.begin(), exchanged.end());
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
    works.push_back(comm.all_to_all(send, exchange));
    works.push_back(comm.all_gather(blocks[0], gather));
    works.push_back(comm.broadcast(shared, 0));
    wait_all(works);
    comm.barrier();
  }
  EXPECT_EQ(allocations(), before);
}

// A message that is not of the size that was asked for is an error that names both ranks.
void sizes_must_match(Communicator& comm) {
  const int to = (comm.rank() + 1) % comm.size();
  const int from = (comm.rank() + comm.size() - 1) % comm.size();
  for (const std::size_t wanted : {3U, 9U}) {
    const Buffer out(6);
    Buffer in(wanted);
    Work send = comm.isend(out, to);
    Work receive = comm.irecv(in, from);
    try {
      receive.wait();
      ADD_FAILURE() << "6 bytes arrived as " << wanted;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::failure);
      EXPECT_NE(error.where().find("rank " + std::to_string(comm.rank())), std::string::npos);
      EXPECT_NE(error.where().find("irecv"), std::string::npos) << error.where();
      EXPECT_NE(error.where().find("rank " + std::to_string(from)), std::string::npos);
      EXPECT_FALSE(receive.pending());
    }
    try {
      send.wait();
    } catch (const Error&) {  // MPI does not tell the sender; threads do
    }
  }
  comm.barrier();
}

// Wrong arguments are found before anything is sent.
void wrong_arguments(Communicator& comm) {
  Buffer data(4);
  EXPECT_THROW(comm.isend(data, comm.size()), Error);
  EXPECT_THROW(comm.irecv(data, -1), Error);
  EXPECT_THROW(comm.broadcast(data, comm.size()), Error);
  EXPECT_THROW(comm.all_gather(data, {}), Error);
  EXPECT_THROW(comm.all_to_all({}, {}), Error);
  comm.barrier();
}

}  // namespace

const std::vector<Contract>& contracts() {
#define CONTRACT(name) \
  Contract {           \
#name, name        \
  }
  static const std::vector<Contract> all = {
      CONTRACT(fifo_per_pair),
      CONTRACT(empty_messages),
      CONTRACT(send_to_oneself),
      CONTRACT(opposite_directions),
      CONTRACT(many_outstanding),
      CONTRACT(random_traffic),
      CONTRACT(all_to_all_of_any_sizes),
      CONTRACT(all_gather_of_any_sizes),
      CONTRACT(broadcast_from_every_root),
      CONTRACT(collectives_and_messages_apart),
      CONTRACT(barrier_waits_for_all),
      CONTRACT(split_by_color_and_key),
      CONTRACT(communicators_apart),
      CONTRACT(works_move),
      CONTRACT(no_allocation_after_warm_up),
      CONTRACT(sizes_must_match),
      CONTRACT(wrong_arguments),
  };
#undef CONTRACT
  return all;
}

}  // namespace concertina::test
