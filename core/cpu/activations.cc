// Activation functions outside of products, and rotary embedding.
#include <cmath>

#include "core/cpu/run_op.h"
#include "core/rotary.h"

namespace concertina::cpu {

void run(const GatedSilu& op, const Context& context) {
  const std::int64_t f = op.width;
  typed(op.u.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.y) / f, kRowRun, [&](std::int64_t r, std::int64_t end) {
      loops.gated_silu(op.u.as<T>() + r * 2 * f, op.y.as<T>() + r * f, end - r, f);
    });
  });
}

void run(const GatedSiluInput& op, const Context& context) {
  const std::int64_t f = op.width;
  typed(op.u.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.dy) / f, kRowRun, [&](std::int64_t r, std::int64_t end) {
      loops.gated_silu_backward(op.dy.as<T>() + r * f, op.u.as<T>() + r * 2 * f,
                                op.du.as<T>() + r * 2 * f, end - r, f);
    });
  });
}

void run(const Tanh& op, const Context& context) {
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.y), kElementRun, [&](std::int64_t i, std::int64_t end) {
      loops.hyperbolic_tangent(op.x.as<T>() + i, op.y.as<T>() + i, end - i);
    });
  });
}

void run(const TanhInput& op, const Context& context) {
  typed(op.y.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.dx), kElementRun, [&](std::int64_t i, std::int64_t end) {
      loops.hyperbolic_tangent_backward(op.dy.as<T>() + i, op.y.as<T>() + i, op.dx.as<T>() + i,
                                        end - i);
    });
  });
}

// `aux` contains the derivative, which the epilogue of the forward product stored.
void run(const ActivationInput& op, const Context& context) {
  typed(op.dx.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.dx), kElementRun, [&](std::int64_t i, std::int64_t end) {
      loops.scaled(op.dy.as<T>() + i, op.aux.as<T>() + i, op.dx.as<T>() + i, end - i);
    });
  });
}

void run(const RotaryTable& op, const Context& context) {
  const std::int64_t half = op.spec.columns / 2;
  context.team.each(half, [&](std::int64_t i, int) {
    const double frequency = rotary_frequency(op.spec, i);
    float* to = op.table.f32() + i;
    for (std::int64_t t = 0; t < op.tokens; ++t, to += 2 * half) {
      const double angle = static_cast<double>(t) * frequency;
      to[0] = static_cast<float>(op.spec.magnitude * std::cos(angle));
      to[half] = static_cast<float>(op.spec.magnitude * std::sin(angle));
    }
  });
}

void run(const Rotate& op, const Context& context) {
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.x) / op.stride, kRowRun, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r) {
        const std::int64_t start = op.starts.empty() ? 0 : op.starts.i32()[r];
        loops.rotate(op.x.as<T>() + r * op.stride,
                     op.table.f32() + (r % op.tokens - start) * op.columns, op.heads, op.head_dim,
                     op.columns, op.inverse);
      }
    });
  });
}

}  // namespace concertina::cpu
