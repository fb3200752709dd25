// A GPU's streams for tests of what is asynchronous: work waits in its stream until somebody looks
// at an event or a communicator, and then some of it runs, in an order that changes all the time.
// Invariants: nothing runs before what it waits for, and messages between two ranks only when both
// ends are at the head of their streams, as NCCL's kernels do: what would wait for ever on a GPU
// does so here. One lock for all. Nothing here uses operator new once it has run for a while.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <deque>
#include <mutex>
#include <vector>

namespace concertina::emulation {

/// Tests count what goes through operator new.
template <class T>
struct Malloc {
  using value_type = T;
  Malloc() = default;
  template <class U>
  Malloc(const Malloc<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(std::malloc(n * sizeof(T))); }
  void deallocate(T* at, std::size_t) { std::free(at); }
  bool operator==(const Malloc&) const { return true; }
};
template <class T>
using Fifo = std::deque<T, Malloc<T>>;
template <class T>
using List = std::vector<T, Malloc<T>>;

/// What a stream does at one place; the message group of a communicator, for one.
class Task {
 public:
  virtual ~Task() = default;
  virtual void start() = 0;  // it is at the head of its stream
  virtual bool done() = 0;
};

struct Event {
  std::size_t issued = 0, passed = 0;
};

struct Operation {
  enum class Kind { copy, fill, record, wait, task } kind;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  Event* event = nullptr;
  std::size_t ticket = 0;
  Task* task = nullptr;
};

std::recursive_mutex& device_lock();
void enqueue(cudaStream_t stream, const Operation& operation);
/// Takes a task that will never be done out of its stream.
void withdraw(const Task& task);
/// Runs some of what can run.
void advance();
unsigned random_number();
[[noreturn]] void fail(const char* what);

}  // namespace concertina::emulation
