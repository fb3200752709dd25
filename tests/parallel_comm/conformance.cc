#include "tests/parallel_comm/conformance.h"

#include <cstdint>

#include "tests/parallel_comm/conformance_room.h"

namespace concertina::test {

std::vector<Contract> contracts() {
  std::vector<Contract> all;
  for (const auto& room : {message_contracts(), collective_contracts(), communicator_contracts()})
    all.insert(all.end(), room.begin(), room.end());
  return all;
}

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

}  // namespace concertina::test
