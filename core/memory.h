// Where tensors live, and how host code reaches them.
// Invariant: what Memory::allocate gave is only touched by kernels, copy() and Staging, unless
// on_host().
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

/// Host memory that a message passes through, and one copy at a time between it and a block, beside
/// the kernels. The block is the copy's alone from its start to its end: kernels that are issued in
/// between leave it alone.
class Staging {
 public:
  virtual ~Staging() = default;
  virtual std::span<std::byte> host() = 0;
  /// The next copy waits for the kernels issued so far, and for none that are issued later: it
  /// reads what they wrote, or writes over what they read.
  virtual void mark() = 0;
  /// Starts a copy of host().size() bytes.
  virtual void fetch(const void* block) = 0;
  virtual void deliver(void* block) = 0;
  /// The copy has ended: host code may use host(), and kernels issued from now on the block.
  virtual bool idle() = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;
  /// A zeroed block. Its error says what `name` wanted, and what would help.
  virtual void* allocate(std::size_t bytes, std::string_view name) = 0;
  virtual void release(void* block, std::size_t bytes) noexcept = 0;
  /// Gives back all of a block but its first `left` bytes; false: it cannot, and nothing changes.
  virtual bool trim(void* /*block*/, std::size_t /*bytes*/, std::size_t /*left*/) noexcept {
    return false;
  }
  /// Between blocks and host memory, in any direction, after all kernels issued so far; complete
  /// on return if one side is host memory.
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  /// A device's memory, which blocks are taken from, which others take from as well, and which ends
  /// before the host's does; `free` bytes now. None for host memory.
  struct Pool {
    std::string name;
    std::size_t free = 0;
    std::size_t unplanned = 0;  // of `free`, what a process takes besides
  };
  virtual std::optional<Pool> pool() const { return {}; }
  /// The memory outlives it. Unless overridden, its copies are copy() and end at once.
  virtual std::unique_ptr<Staging> make_staging(std::size_t bytes);
  /// Host code may read and write blocks directly.
  virtual bool on_host() const { return false; }
};

Memory& host_memory();

/// `tensor` for host code to read: itself where that can be, else a copy in `scratch`.
View host_view(Memory& memory, View tensor, std::vector<std::byte>& scratch);

/// Host memory that stands for a tensor: the tensor itself where that can be.
class HostMirror {
 public:
  HostMirror() = default;
  HostMirror(Memory& memory, View tensor);
  HostMirror(HostMirror&&) = default;  // no copies: host() points into its own memory
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
