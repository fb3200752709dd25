// The kernels of core/ops.h on the CPU. Each divides its work into pieces for the team; the loops
// are in loops.h.
// Invariant: pieces do not depend on the number of threads, and none splits a sum.
#pragma once

#include "core/cpu/team.h"
#include "core/ops.h"

namespace concertina::cpu {

#define CONCERTINA_RUN(Kernel) void run(const Kernel& op, const Context& context);
CONCERTINA_KERNELS(CONCERTINA_RUN)
#undef CONCERTINA_RUN

template <OperatorOp T>
void run(const T& op, const Context& /*context*/) {
  op.run();
}

inline constexpr std::int64_t kRowRun = 32;           // rows per piece of a row-wise loop
inline constexpr std::int64_t kColumnRun = 64;        // columns per piece of a sum over rows
inline constexpr std::int64_t kTableColumns = 128;    // likewise, for rows that are far apart
inline constexpr std::int64_t kSampleColumns = 1024;  // columns per piece of a sum over samples
inline constexpr std::int64_t kElementRun = 16384;    // elements per piece of an elementwise loop

inline std::int64_t count_of(View view) {
  return static_cast<std::int64_t>(view.count);
}

DropoutRule rule_of(const DropoutMask& mask, Purpose purpose);

/// Calls f(loops) with the loops for activations of this type.
template <class F>
void typed(DType activations, const LoopTable& loops, F&& f) {
  if (activations == DType::bf16)
    f(loops.bf16);
  else
    f(loops.f32);
}

}  // namespace concertina::cpu
