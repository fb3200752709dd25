// Shared by the rooms of the conformance suite. To add a check, write a function and add its name
// to the list at the end of its room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/parallel_comm/conformance.h"

#define CONTRACT(name) \
  { #name, name }

namespace concertina::test {

std::vector<Contract> message_contracts();
std::vector<Contract> collective_contracts();

using Buffer = std::vector<std::byte>;

/// Returns bytes that identify their message.
inline Buffer message(std::size_t bytes, int from, int to, int number) {
  Buffer data(bytes);
  auto x = static_cast<std::uint32_t>(from * 1009 + to * 9176 + number * 31337 + 1);
  for (std::byte& b : data) b = static_cast<std::byte>((x = x * 1664525U + 1013904223U) >> 24);
  return data;
}

inline void wait_all(std::vector<Work>& works) {
  for (Work& work : works) work.wait();
  works.clear();
}

struct Neighbors {
  int to, from;
};
/// Returns the ranks `distance` after and before this rank.
inline Neighbors neighbors(const Communicator& comm, int distance = 1) {
  return {(comm.rank() + distance) % comm.size(),
          (comm.rank() + comm.size() - distance) % comm.size()};
}

template <class T>
Bytes bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
template <class T>
ConstBytes bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
/// Returns a view of each element.
template <class T>
std::vector<Bytes> views_of(std::vector<T>& values) {
  std::vector<Bytes> views;
  for (T& value : values) views.push_back(bytes_of(value));
  return views;
}

}  // namespace concertina::test
