// A GPU's streams, for tests of asynchronous code. Work waits in its stream until an event or a
// communicator is queried; then some of it runs, in an ever-changing order.
// Invariants: nothing runs before its dependencies. Messages between two ranks run only when both
// ends are at the head of their streams, as NCCL's kernels do, so what would hang on a GPU hangs
// here. One lock protects everything. After warm-up, nothing here uses operator new.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <deque>
#include <mutex>
#include <vector>

namespace concertina::emulation {

/// Bypasses operator new, whose calls are counted by tests.
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

/// A task in a stream, for example the message group of a communicator.
class Task {
 public:
  virtual ~Task() = default;
  virtual void start() = 0;  // called at the head of its stream
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
/// Removes a task that will never be done from its stream.
void withdraw(const Task& task);
/// Runs some of the work that can run.
void advance();
unsigned random_number();
[[noreturn]] void fail(const char* what);

}  // namespace concertina::emulation
