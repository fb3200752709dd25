// Where tensors are stored, and how host code accesses them.
// Invariant: only kernels, copy() and Staging access blocks from Memory::allocate, unless on_host()
// is true.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace concertina {

/// Host memory for messages, and asynchronous copies between it and a block, one at a time,
/// concurrent with kernels. During a copy, kernels must not access the block.
class Staging {
 public:
  virtual ~Staging() = default;
  virtual std::span<std::byte> host() = 0;
  /// Makes the next copy wait for the kernels issued so far, which may access its source or
  /// destination, but not for later kernels.
  virtual void mark() = 0;
  /// Starts a copy of host().size() bytes.
  virtual void fetch(const void* block) = 0;
  virtual void deliver(void* block) = 0;
  /// Whether the copy is complete. If so, host code may use host(), and kernels the block.
  virtual bool idle() = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;
  /// Returns a zeroed block. If it fails, the error names `name` and suggests a fix.
  virtual void* allocate(std::size_t bytes, std::string_view name) = 0;
  virtual void release(void* block, std::size_t bytes) noexcept = 0;
  /// Frees all but the first `left` bytes of a block. Returns false if unsupported.
  virtual bool trim(void* /*block*/, std::size_t /*bytes*/, std::size_t /*left*/) noexcept {
    return false;
  }
  /// Copies between blocks and host memory, in any direction, after all kernels issued so far.
  /// Complete on return if one side is host memory.
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  /// The device memory from which blocks are allocated. Other processes use it, too, and it runs
  /// out before host memory. `free` bytes are available now. Host memory has no pool.
  struct Pool {
    std::string name;
    std::size_t free = 0;
    std::size_t unplanned = 0;  // part of `free` that each process needs besides its blocks
  };
  virtual std::optional<Pool> pool() const { return {}; }
  /// The memory must outlive the result. By default, copies use copy() and are synchronous.
  virtual std::unique_ptr<Staging> make_staging(std::size_t bytes);
  /// Whether host code may access blocks directly.
  virtual bool on_host() const { return false; }
};

Memory& host_memory();

/// Returns `tensor` for host code to read: directly if possible, otherwise a copy in `scratch`.
View host_view(Memory& memory, View tensor, std::vector<std::byte>& scratch);

/// Host memory that mirrors a tensor, or the tensor itself if possible.
class HostMirror {
 public:
  HostMirror() = default;
  HostMirror(Memory& memory, View tensor);
  HostMirror(HostMirror&&) = default;  // not copyable: host() may point into its own buffer
  HostMirror& operator=(HostMirror&&) = default;
  View host() const { return host_; }
  /// Writes elements [begin, begin + count) to the tensor.
  void upload(std::size_t begin, std::size_t count);
  void upload() { upload(0, host_.count); }

 private:
  Memory* memory_ = nullptr;
  View tensor_, host_;
  std::vector<std::byte> copy_;
};

}  // namespace concertina
