// Rotary position embedding, by rows.
#include "core/rotary.h"

#include <cmath>

#include "core/cpu/pieces.h"
#include "core/cpu/run_op.h"

namespace concertina::cpu {

void run(const RotaryTable& op, const Context& context) {
  const std::int64_t half = op.head_dim / 2;
  context.team.each(half, [&](std::int64_t i, int) {
    const double frequency = rotary_frequency(op.theta, op.head_dim, i);
    float* to = op.table.f32() + i;
    for (std::int64_t t = 0; t < op.tokens; ++t, to += op.head_dim) {
      const double angle = static_cast<double>(t) * frequency;
      to[0] = static_cast<float>(std::cos(angle));
      to[half] = static_cast<float>(std::sin(angle));
    }
  });
}

void run(const Rotate& op, const Context& context) {
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.x) / op.stride, kRowRun, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r)
        loops.rotate(op.x.as<T>() + r * op.stride, op.table.f32() + r % op.tokens * op.head_dim,
                     op.heads, op.head_dim, op.inverse);
    });
  });
}

}  // namespace concertina::cpu
