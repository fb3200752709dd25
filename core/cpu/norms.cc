// Layer norm and RMS norm by rows; their weight gradients by columns.
#include "core/cpu/run_op.h"

namespace concertina::cpu {

void run(const LayerNorm& op, const Context& context) {
  const std::int64_t c = count_of(op.gamma);
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.mean), kRowRun, [&](std::int64_t r, std::int64_t end) {
      loops.layer_norm(op.x.as<T>() + r * c, op.gamma.f32(), op.beta.f32(), op.eps,
                       op.y.as<T>() + r * c, op.mean.f32() + r, op.rstd.f32() + r, end - r, c);
    });
  });
}

void run(const LayerNormInput& op, const Context& context) {
  const std::int64_t c = count_of(op.gamma);
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.mean), kRowRun, [&](std::int64_t r, std::int64_t end) {
      const T* residual = op.residual_grad.empty() ? nullptr : op.residual_grad.as<T>() + r * c;
      loops.layer_norm_backward_input(op.dy.as<T>() + r * c, op.x.as<T>() + r * c, op.gamma.f32(),
                                      op.mean.f32() + r, op.rstd.f32() + r, residual,
                                      op.dx.as<T>() + r * c, end - r, c);
    });
  });
}

void run(const LayerNormWeight& op, const Context& context) {
  const std::int64_t c = count_of(op.dgamma);
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(c, kColumnRun, [&](std::int64_t i, std::int64_t end) {
      loops.layer_norm_backward_weight(op.dy.as<T>() + i, op.x.as<T>() + i, op.mean.f32(),
                                       op.rstd.f32(), op.dgamma.f32() + i, op.dbeta.f32() + i,
                                       count_of(op.mean), c, end - i, op.accumulate);
    });
  });
}

void run(const RmsNorm& op, const Context& context) {
  const std::int64_t c = count_of(op.gamma);
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.rstd), kRowRun, [&](std::int64_t r, std::int64_t end) {
      loops.rms_norm(op.x.as<T>() + r * c, op.gamma.f32(), op.eps, op.y.as<T>() + r * c,
                     op.rstd.f32() + r, end - r, c);
    });
  });
}

void run(const RmsNormInput& op, const Context& context) {
  const std::int64_t c = count_of(op.gamma);
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.rstd), kRowRun, [&](std::int64_t r, std::int64_t end) {
      const T* residual = op.residual_grad.empty() ? nullptr : op.residual_grad.as<T>() + r * c;
      loops.rms_norm_backward_input(op.dy.as<T>() + r * c, op.x.as<T>() + r * c, op.gamma.f32(),
                                    op.rstd.f32() + r, residual, op.dx.as<T>() + r * c, end - r, c);
    });
  });
}

void run(const RmsNormWeight& op, const Context& context) {
  const std::int64_t c = count_of(op.dgamma);
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(c, kColumnRun, [&](std::int64_t i, std::int64_t end) {
      loops.rms_norm_backward_weight(op.dy.as<T>() + i, op.x.as<T>() + i, op.rstd.f32(),
                                     op.dgamma.f32() + i, count_of(op.rstd), c, end - i,
                                     op.accumulate);
    });
  });
}

}  // namespace concertina::cpu
