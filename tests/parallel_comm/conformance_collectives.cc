// Collectives: who gets what, and that they match by their order alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/parallel_comm/conformance_room.h"

namespace concertina::test {
namespace {

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

// No rank leaves a barrier before the last has come.
void barrier_waits_for_all(Communicator& comm) {
  using Clock = std::chrono::steady_clock;  // one for all processes of a host
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

// "no tags": collectives match by their order alone, never with messages between two ranks.
void collectives_and_messages_apart(Communicator& comm) {
  const auto [to, from] = neighbours(comm);
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
  EXPECT_FALSE(receive.test()) << "before it was sent";
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
  return {CONTRACT(all_to_all_of_any_sizes), CONTRACT(all_gather_of_any_sizes),
          CONTRACT(broadcast_from_every_root), CONTRACT(barrier_waits_for_all),
          CONTRACT(collectives_and_messages_apart)};
}

}  // namespace concertina::test
