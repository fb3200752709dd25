// The interface for running kernels (core/ops.h), implemented for CPU and CUDA.
// Invariants: kernels run in order on the backend's stream. Nothing allocates once the operators
// exist and the workspace is set. No kernel splits a reduction by thread, so results do not depend
// on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/kernel_clock.h"
#include "core/memory.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/precision.h"

namespace concertina {

/// Kernels that a step issues repeatedly: one pass of one unit, and nothing else.
struct RepeatedPass {
  std::string_view unit;  // for errors, like `pass`
  std::string_view pass;
  /// Equal keys mean the same kernels with the same arguments, except for the step and sample of
  /// dropout masks, which are in `random`.
  std::span<const std::uint64_t> key;
  RandomAt random;
};

/// Counts since the backend was created.
struct PassCounts {
  std::int64_t issued = 0;    // kernel by kernel
  std::int64_t replayed = 0;  // from a recording
  std::int64_t recordings = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Returns a description for the log: name, threads, instruction set, library versions.
  virtual std::string describe() const = 0;
  /// Throws Error{bad_input}, naming what is missing, if `precision` cannot run here.
  virtual void require(const Precision& precision) const = 0;
  /// Whether products in `compute` are emulated in another type, which is slower.
  virtual bool emulates(DType compute) const = 0;

  // Operators, created before the first step. Each may raise workspace_bytes().
  virtual std::shared_ptr<Linear> linear(const LinearShape& shape) = 0;
  virtual std::shared_ptr<Attention> attention(const AttentionShape& shape) = 0;
  /// Returns the scratch size shared by all operators created so far.
  virtual std::size_t workspace_bytes() const = 0;
  virtual void set_workspace(void* workspace) = 0;
  /// Resets workspace_bytes() and clock()'s reservations after all operators have been destroyed.
  virtual void forget_operators() = 0;

  /// Issues the kernel of `op`. Results are available after synchronize().
  virtual void run(const Op& op) = 0;

  /// Whether repeat() records passes. If it does not, passes need no key, and callers issue the
  /// kernels themselves.
  virtual bool records_passes() const { return false; }
  /// Calls `issue` to issue the kernels of `pass`, or replays the recording made with an equal key.
  virtual void repeat(const RepeatedPass& /*pass*/, const std::function<void()>& issue) { issue(); }
  /// Discards all recordings. Called when units or their memory change.
  virtual void forget_passes() {}
  virtual PassCounts pass_counts() const { return {}; }

  /// Returns the memory that holds the tensors.
  virtual Memory& memory() = 0;
  /// Returns the kernel clock.
  virtual KernelClock& clock() = 0;

  /// Waits for all issued work, after which host code may access the buffers.
  virtual void synchronize() = 0;
};

/// Creates the CPU backend: oneDNN products, fused loops, `threads` threads per rank. `isa` selects
/// the instruction set of the loops (baseline, avx2, avx512, avx512_bf16); empty selects the best
/// available. bf16 products are emulated, except with avx512 on a processor that supports them.
std::unique_ptr<Backend> make_cpu_backend(int threads, std::string_view isa = {});

}  // namespace concertina
