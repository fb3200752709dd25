// Messages between two ranks: order, sizes, numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "tests/errors.h"
#include "tests/parallel_comm/conformance_room.h"

namespace concertina::test {
namespace {

// Messages are FIFO per pair of ranks, including a rank and itself, whatever their sizes and the
// order of waits. Empty messages keep their place in the order.
void fifo_per_pair(Communicator& comm) {
  constexpr int kMessages = 24;
  const auto size_of = [](int n) {
    return static_cast<std::size_t>(n % 6 == 5 ? 0 : n == 7 ? 300'000 : n * 977 % 20011);
  };
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

// Long messages in both directions at once: no rank has to be first.
void opposite_directions(Communicator& comm) {
  constexpr std::size_t kBytes = 1 << 20;
  for (int distance = 1; distance < comm.size(); ++distance) {
    const auto [to, from] = neighbors(comm, distance);
    const Buffer out = message(kBytes, comm.rank(), to, 0);
    Buffer in(kBytes);
    Work send = comm.isend(out, to);
    Work receive = comm.irecv(in, from);
    send.wait();
    receive.wait();
    EXPECT_TRUE(in == message(kBytes, from, comm.rank(), 0)) << "from rank " << from;
  }
}

// Any number of Works may be pending.
void many_outstanding(Communicator& comm) {
  constexpr int kMessages = 2000;
  const auto [to, from] = neighbors(comm);
  std::vector<int> out(kMessages), in(kMessages, -1);
  std::iota(out.begin(), out.end(), comm.rank() * kMessages);
  std::vector<Work> works;
  for (int& value : in) works.push_back(comm.irecv(bytes_of(value), from));
  for (const int& value : out) works.push_back(comm.isend(bytes_of(value), to));
  wait_all(works);
  for (int n = 0; n < kMessages; ++n) ASSERT_EQ(in[n], from * kMessages + n);
}

// Random matching traffic, posted and awaited in random order, arrives.
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

// A message of a different size than requested is an error that names both ranks.
void sizes_must_match(Communicator& comm) {
  const auto [to, from] = neighbors(comm);
  for (const std::size_t wanted : {3U, 9U}) {
    const Buffer out(6);
    Buffer in(wanted);
    Work send = comm.isend(out, to);
    Work receive = comm.irecv(in, from);
    const Error error = thrown_by([&] { receive.wait(); });
    EXPECT_EQ(error.code(), Exit::failure) << "6 bytes as " << wanted;
    for (const std::string& part : {"rank " + std::to_string(comm.rank()), std::string("irecv"),
                                    "rank " + std::to_string(from)})
      expect_has(error.where(), part);
    EXPECT_FALSE(receive.pending());
    try {
      send.wait();
    } catch (const Error&) {  // with threads, the sender is notified too; not with MPI
    }
  }
  comm.barrier();
}

}  // namespace

std::vector<Contract> message_contracts() {
  return {CONTRACT(fifo_per_pair), CONTRACT(opposite_directions), CONTRACT(many_outstanding),
          CONTRACT(random_traffic), CONTRACT(sizes_must_match)};
}

}  // namespace concertina::test
