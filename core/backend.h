// A backend runs kernels (core/ops.h): the interface that CPU and CUDA implement.
// Invariants: kernels are ordered on the backend's stream; nothing allocates after the operators
// are made and the workspace is set; no kernel splits a reduction by thread, so the number of
// threads never changes a bit.
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

/// Kernels that a step issues again and again: one pass of one unit. Nothing else happens in it.
struct RepeatedPass {
  std::string_view unit;  // for errors, like `pass`
  std::string_view pass;
  /// Equal words: the same kernels with the same arguments, but for the step and sample of
  /// dropout's masks, which are those of `random`.
  std::span<const std::uint64_t> key;
  RandomAt random;
};

/// Since a backend was made.
struct PassCounts {
  std::int64_t issued = 0;    // kernel by kernel
  std::int64_t replayed = 0;  // from a recording
  std::int64_t recordings = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Says what it is, for the log and doctor: name, threads, instruction set, library versions.
  virtual std::string describe() const = 0;
  /// Throws Error{bad_input} that names what is lacking if `precision` cannot run here.
  virtual void require(const Precision& precision) const = 0;
  /// Whether products in `compute` give its results but are done in another type, without its
  /// speed.
  virtual bool emulates(DType compute) const = 0;

  // Operators, made before the first step; each may raise workspace_bytes().
  virtual std::shared_ptr<Linear> linear(const LinearShape& shape) = 0;
  virtual std::shared_ptr<Attention> attention(const AttentionShape& shape) = 0;
  /// Scratch that the operators made so far share.
  virtual std::size_t workspace_bytes() const = 0;
  virtual void set_workspace(void* workspace) = 0;
  /// All operators made so far are gone: workspace_bytes() and the room of clock() start anew.
  virtual void forget_operators() = 0;

  /// Issues the kernel of `op`; results are there after synchronize().
  virtual void run(const Op& op) = 0;

  /// Whether repeat() records passes. Where it does not, they need no key: callers issue their
  /// kernels themselves.
  virtual bool records_passes() const { return false; }
  /// Calls `issue`, which issues the kernels of `pass`, or replays the recording that was made
  /// under an equal key.
  virtual void repeat(const RepeatedPass& /*pass*/, const std::function<void()>& issue) { issue(); }
  /// Keys get new meanings: units or their memory change.
  virtual void forget_passes() {}
  virtual PassCounts pass_counts() const { return {}; }

  /// Where its tensors are.
  virtual Memory& memory() = 0;
  /// When its kernels run.
  virtual KernelClock& clock() = 0;

  /// All work issued so far is done (host code may read and write the buffers).
  virtual void synchronize() = 0;
};

/// The CPU backend: oneDNN products, fused loops, `threads` threads a rank. `isa` picks the loops'
/// instruction set (baseline, avx2, avx512, avx512_bf16); empty: the best that this machine has.
/// Products of bf16 are emulated but with avx512 and a processor that has them.
std::unique_ptr<Backend> make_cpu_backend(int threads, std::string_view isa = {});

}  // namespace concertina
