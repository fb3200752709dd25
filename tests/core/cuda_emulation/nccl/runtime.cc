// CUDA's runtime over the streams of device.h. Each thread has its own device, like a process.
#include <cuda_runtime_api.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "device.h"

namespace concertina::emulation {
namespace {

struct Stream {
  std::thread::id rank;
  Fifo<Operation> queue;
  bool started = false;  // the task at its head
};

constexpr int kDevices = 8;
constexpr std::size_t kMemory = std::size_t{1} << 30;
List<Stream*> streams;
std::map<const void*, std::size_t> device_blocks;
thread_local int current_device = 0;

Stream* of(cudaStream_t stream) {
  if (stream == nullptr) fail("the default stream");
  return reinterpret_cast<Stream*>(stream);
}
Event* of(cudaEvent_t event) {
  return reinterpret_cast<Event*>(event);
}

bool run_head(Stream& stream) {
  const Operation& head = stream.queue.front();
  switch (head.kind) {
    case Operation::Kind::copy:
      std::memmove(head.to, head.from, head.bytes);
      return true;
    case Operation::Kind::fill:
      std::memset(head.to, static_cast<int>(head.ticket), head.bytes);
      return true;
    case Operation::Kind::record:
      head.event->passed = std::max(head.event->passed, head.ticket);
      return true;
    case Operation::Kind::wait:
      return head.event->passed >= head.ticket;
    case Operation::Kind::task:
      if (!std::exchange(stream.started, true)) head.task->start();
      if (!head.task->done()) return false;
      stream.started = false;
      return true;
  }
  return false;
}

}  // namespace

std::recursive_mutex& device_lock() {
  static std::recursive_mutex lock;
  return lock;
}

void enqueue(cudaStream_t stream, const Operation& operation) {
  of(stream)->queue.push_back(operation);
}

void withdraw(const Task& task) {
  for (Stream* stream : streams) {
    const auto same = [&](const Operation& one) { return one.task == &task; };
    if (!stream->queue.empty() && same(stream->queue.front())) stream->started = false;
    std::erase_if(stream->queue, same);
  }
}

unsigned random_number() {
  static unsigned state = 1;
  return (state = state * 1664525U + 1013904223U) >> 16U;
}

void advance() {
  for (std::size_t i = 0, first = random_number(); i < streams.size(); ++i) {
    Stream& stream = *streams[(first + i) % streams.size()];
    while (!stream.queue.empty() && random_number() % 4 != 0 && run_head(stream))
      stream.queue.pop_front();
  }
}

void fail(const char* what) {
  std::fprintf(stderr, "NCCL emulation: %s\n", what);
  std::abort();
}

}  // namespace concertina::emulation

using namespace concertina::emulation;
using Lock = std::lock_guard<std::recursive_mutex>;

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const Lock lock(device_lock());
  if (bytes > kMemory) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  std::memset(*memory, 0xFF, bytes);
  device_blocks[*memory] = bytes + 1;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {  // waits for all work of its process
  const auto idle = [](const Stream* stream) {
    return stream->rank != std::this_thread::get_id() || stream->queue.empty();
  };
  for (bool done = false; !done; ::sched_yield()) {
    const Lock lock(device_lock());
    advance();
    done = std::all_of(streams.begin(), streams.end(), idle);
  }
  const Lock lock(device_lock());
  device_blocks.erase(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Lock lock(device_lock());
  if (kind != cudaMemcpyDefault) return cudaErrorInvalidValue;
  enqueue(stream, {Operation::Kind::copy, to, from, bytes});
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  const Lock lock(device_lock());
  enqueue(stream, {Operation::Kind::fill, memory, nullptr, bytes, nullptr,
                   static_cast<std::size_t>(value)});
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  const Lock lock(device_lock());
  const auto after = device_blocks.upper_bound(memory);
  const bool inside =
      after != device_blocks.begin() &&
      static_cast<const char*>(memory) <
          static_cast<const char*>(std::prev(after)->first) + std::prev(after)->second;
  attributes->type = inside ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kMemory;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Lock lock(device_lock());
  streams.push_back(new Stream{std::this_thread::get_id(), {}});
  *stream = reinterpret_cast<cudaStream_t>(streams.back());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cudaStreamSynchronize(stream);
  const Lock lock(device_lock());
  std::erase(streams, of(stream));
  delete of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  for (;; ::sched_yield()) {
    const Lock lock(device_lock());
    advance();
    if (of(stream)->queue.empty()) return cudaSuccess;
  }
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(device_lock());
  enqueue(stream, {Operation::Kind::wait, nullptr, nullptr, 0, of(event), of(event)->issued});
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;  // queued work may still refer to it
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(device_lock());
  enqueue(stream, {Operation::Kind::record, nullptr, nullptr, 0, of(event), ++of(event)->issued});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(device_lock());
  advance();
  return of(event)->passed >= of(event)->issued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02d", device);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::strcpy(properties->name, "emulated");
  properties->major = 9;
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  return cudaSuccess;
}

}  // extern "C"
