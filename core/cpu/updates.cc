// Kernels of optimizers.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "core/cpu/run_op.h"

namespace concertina::cpu {
namespace {

/// Maximum number of pieces of a sum over a whole tensor, which must fit on the stack. The length
/// of a piece depends only on the size of the tensor.
constexpr std::int64_t kMostSums = 256;

std::int64_t sum_run(std::int64_t count) {
  const std::int64_t share = (count + kMostSums - 1) / kMostSums;
  return std::max(kElementRun, (share + 63) / 64 * 64);
}

class TensorSums {
 public:
  double& of(std::int64_t piece) { return sums_[static_cast<std::size_t>(piece)]; }
  double norm() const { return std::sqrt(std::accumulate(sums_.begin(), sums_.end(), 0.0)); }

 private:
  std::array<double, kMostSums> sums_{};
};

}  // namespace

void run(const AdamWUpdate& op, const Context& context) {
  const AdamWConstants rule = constants_of(op.rule);
  context.team.runs(count_of(op.w), kElementRun, [&](std::int64_t i, std::int64_t end) {
    context.loops.adamw(rule, op.w.f32() + i, op.m.f32() + i, op.v.f32() + i, op.g.f32() + i,
                        end - i);
  });
}

void run(const SgdUpdate& op, const Context& context) {
  context.team.runs(count_of(op.w), kElementRun, [&](std::int64_t i, std::int64_t end) {
    context.loops.sgd(op.rule, op.w.f32() + i, op.m.f32() + i, op.g.f32() + i, end - i);
  });
}

void run(const LionUpdate& op, const Context& context) {
  context.team.runs(count_of(op.w), kElementRun, [&](std::int64_t i, std::int64_t end) {
    context.loops.lion(op.rule, op.w.f32() + i, op.m.f32() + i, op.g.f32() + i, end - i);
  });
}

void run(const LambUpdate& op, const Context& context) {
  const AdamWConstants rule = op.rule.constants();
  const std::int64_t count = count_of(op.w), length = sum_run(count);
  TensorSums weights, steps;
  context.team.runs(count, length, [&](std::int64_t begin, std::int64_t end) {
    double weight = 0, step = 0;
    for (std::int64_t i = begin; i < end; i += kElementRun) {  // while it is in cache
      const std::int64_t n = std::min(kElementRun, end - i);
      float *const w = op.w.f32() + i, *const u = op.g.f32() + i;
      context.loops.lamb(rule, w, op.m.f32() + i, op.v.f32() + i, u, n);
      weight += context.loops.sum_squares(w, n);
      step += context.loops.sum_squares(u, n);
    }
    weights.of(begin / length) = weight;
    steps.of(begin / length) = step;
  });
  const double weight = weights.norm(), step = steps.norm();
  const double ratio = op.rule.adapt && weight > 0 && step > 0 ? weight / step : 1;
  const auto rate = static_cast<float>(-ratio * static_cast<double>(op.rule.moments.lr));
  context.team.runs(count, kElementRun, [&](std::int64_t i, std::int64_t end) {
    context.loops.axpby(rate, op.g.f32() + i, 1, op.w.f32() + i, end - i);
  });
}

void run(const ScaleToUnit& op, const Context& context) {
  const std::int64_t count = count_of(op.x), length = sum_run(count);
  TensorSums sums;
  context.team.runs(count, length, [&](std::int64_t i, std::int64_t end) {
    sums.of(i / length) = context.loops.sum_squares(op.x.f32() + i, end - i);
  });
  const auto scale = static_cast<float>(1 / std::max(sums.norm(), static_cast<double>(op.least)));
  context.team.runs(count, kElementRun, [&](std::int64_t i, std::int64_t end) {
    context.loops.axpby(0, op.x.f32() + i, scale, op.x.f32() + i, end - i);
  });
}

void run(const Shrink& op, const Context& context) {
  context.team.runs(count_of(op.x), kElementRun, [&](std::int64_t i, std::int64_t end) {
    for (float& x : std::span(op.x.f32() + i, op.x.f32() + end))
      x = std::abs(x) <= op.by ? 0 : x - std::copysign(op.by, x);  // keeps NaN
  });
}

void run(const KeepZeros& op, const Context& context) {
  context.team.runs(count_of(op.x), kElementRun, [&](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i)
      if (op.w.f32()[i] == 0) op.x.f32()[i] = 0;
  });
}

void run(const CopyColumns& op, const Context& context) {
  const std::int64_t rows = count_of(op.x) / op.x_columns;
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>&) {
    context.team.runs(rows, kRowRun, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        std::copy_n(op.x.as<T>() + r * op.x_columns + op.first_x, op.columns,
                    op.y.as<T>() + r * op.y_columns + op.first_y);
    });
  });
}

}  // namespace concertina::cpu
