// Activation functions that no product has behind it.
#include "core/cpu/pieces.h"
#include "core/cpu/run_op.h"

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
      loops.tanh(op.x.as<T>() + i, op.y.as<T>() + i, end - i);
    });
  });
}

void run(const TanhInput& op, const Context& context) {
  typed(op.y.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.dx), kElementRun, [&](std::int64_t i, std::int64_t end) {
      loops.tanh_backward(op.dy.as<T>() + i, op.y.as<T>() + i, op.dx.as<T>() + i, end - i);
    });
  });
}

// A product's epilogue keeps the derivative itself.
void run(const GeluInput& op, const Context& context) {
  typed(op.dx.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.dx), kElementRun, [&](std::int64_t i, std::int64_t end) {
      loops.scale(op.aux.as<T>() + i, op.dx.as<T>() + i, end - i);
    });
  });
}

}  // namespace concertina::cpu
