#include "block.h"

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "cuda_runtime.h"

alignas(128) thread_local unsigned char concertina_dynamic_shared[232448];
constinit thread_local uint3 threadIdx{}, blockIdx{};
constinit thread_local dim3 blockDim{}, gridDim{};

namespace concertina::emulation {
namespace {

constexpr std::size_t kStack = 128 << 10, kMostBytes = 64;
constexpr unsigned kWarp = 32;

/// A barrier that `expected` threads must reach before any continues.
struct Meeting {
  unsigned expected = 0, arrived = 0, generation = 0;
};

struct Warp {
  Meeting meeting;
  const char* operation = nullptr;
  // Two, since a lane may be one exchange ahead of another that still reads the previous one.
  alignas(16) std::array<std::array<std::byte, kMostBytes * kWarp>, 2> slots;
};

/// Lives as long as the program: when a kernel has returned, it waits for the next block.
struct Fiber {
  ucontext_t context{};  // for the first entry; later `place`, which needs no system call
  jmp_buf place;
  bool entered = false;
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStack);
  const Meeting* waits = nullptr;  // until its generation differs from `generation`
  unsigned generation = 0;
  bool done = true;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "CUDA emulation, block (%u, %u, %u), thread %u: %s\n", blockIdx.x,
               blockIdx.y, blockIdx.z, threadIdx.x, what);
  std::abort();
}

class Block {
 public:
  void run(unsigned threads, const std::function<void()>& kernel) {
    if (threads % kWarp != 0) fail("threads are not whole warps");
    kernel_ = &kernel;
    while (fibers_.size() < threads) fibers_.push_back(std::make_unique<Fiber>());
    barrier_ = {threads, 0, 0};
    warps_.assign(threads / kWarp, {});
    for (Warp& warp : warps_) warp.meeting.expected = kWarp;
    for (unsigned t = 0; t < threads; ++t) fibers_[t]->done = false, fibers_[t]->waits = nullptr;
    left_ = threads;
    while (left_ > 0) {
      bool moved = false;
      for (unsigned i = 0; i < warps_.size(); ++i)
        while (run_lanes(reversed_ ? warps_.size() - 1 - i : i)) moved = true;
      if (!moved) fail("waits where other threads of its block never come");
    }
  }

  void meet(Meeting& meeting) {
    Fiber& fiber = *running_;
    const uint3 self = threadIdx;
    fiber.waits = &meeting;
    fiber.generation = meeting.generation;
    if (++meeting.arrived == meeting.expected) {
      meeting.arrived = 0;
      ++meeting.generation;
    }
    yield(fiber);
    threadIdx = self;
  }

  void barrier() { meet(barrier_); }

  const std::byte* exchange(const char* operation, const void* mine, std::size_t bytes) {
    if (bytes > kMostBytes) fail("too much for an exchange");
    Warp& warp = warps_[threadIdx.x / kWarp];
    if (warp.meeting.arrived == 0) warp.operation = operation;
    if (std::string_view(operation) != warp.operation) fail("lanes meet in different exchanges");
    auto& slots = warp.slots[warp.meeting.generation % 2];
    if (bytes > 0) std::memcpy(slots.data() + threadIdx.x % kWarp * bytes, mine, bytes);
    meet(warp.meeting);
    return slots.data();
  }

  void reverse(bool reversed) { reversed_ = reversed; }

 private:
  static void enter();

  /// Runs each lane of a warp to its next barrier or exchange; returns false if none can run.
  bool run_lanes(std::size_t warp) {
    bool moved = false;
    for (unsigned i = 0; i < kWarp; ++i) {
      const unsigned t = static_cast<unsigned>(warp) * kWarp + (reversed_ ? kWarp - 1 - i : i);
      Fiber& fiber = *fibers_[t];
      if (fiber.done || (fiber.waits != nullptr && fiber.waits->generation == fiber.generation))
        continue;
      fiber.waits = nullptr;
      threadIdx = {t, 0, 0};
      running_ = &fiber;
      resume(fiber);
      moved = true;
      if (fiber.done) --left_;
    }
    return moved;
  }

  void resume(Fiber& fiber) {
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.entered) _longjmp(fiber.place, 1);
    fiber.entered = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    makecontext(&fiber.context, enter, 0);
    setcontext(&fiber.context);
  }

  void yield(Fiber& fiber) {
    if (_setjmp(fiber.place) == 0) _longjmp(scheduler_, 1);
  }

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  Meeting barrier_;
  jmp_buf scheduler_;
  Fiber* running_ = nullptr;
  unsigned left_ = 0;  // threads whose kernel has not returned
  const std::function<void()>* kernel_ = nullptr;
  bool reversed_ = false;
};

Block& block() {
  static thread_local Block instance;
  return instance;
}

void Block::enter() {
  Block& self = block();
  for (;;) {
    (*self.kernel_)();
    self.running_->done = true;
    self.yield(*self.running_);
  }
}

}  // namespace

void run_grid(dim3 grid, dim3 threads, std::size_t shared_bytes,
              const std::function<void()>& kernel) {
  if (shared_bytes > sizeof(concertina_dynamic_shared)) fail("too much shared memory");
  const DeviceAtWork at_work;
  gridDim = grid, blockDim = threads;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
        std::memset(concertina_dynamic_shared, 0xFF, shared_bytes);
        block().run(threads.x, kernel);
      }
}

void reverse_threads(bool reversed) {
  block().reverse(reversed);
}
void wait_for_block() {
  block().barrier();
}
const std::byte* exchange(const char* operation, const void* mine, std::size_t bytes) {
  return block().exchange(operation, mine, bytes);
}
unsigned lane() {
  return threadIdx.x % kWarp;
}

}  // namespace concertina::emulation
