// Elementwise kernels, and sums of squares.
#include <algorithm>

#include "core/cpu/run_op.h"

namespace concertina::cpu {

DropoutRule rule_of(const DropoutMask& mask, Purpose purpose) {
  const auto [key0, key1] = Rng(mask.at.seed, purpose).key();
  return {key0, key1, mask.at.step, mask.at.unit, mask.threshold(), mask.scale()};
}

// Splits each sample separately, so that every piece starts at a counter's first random word.
void run(const ApplyDropout& op, const Context& context) {
  const DropoutMask& mask = op.mask;
  const DropoutRule rule = rule_of(mask, Purpose::dropout);
  const std::int64_t sample = mask.sample_elements;
  const std::int64_t pieces = (sample + kElementRun - 1) / kElementRun;
  typed(op.u.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.each(count_of(op.u) / sample * pieces, [&](std::int64_t piece, int) {
      const std::int64_t s = piece / pieces, first = piece % pieces * kElementRun;
      const std::int64_t i = s * sample + first;
      loops.dropout(rule, mask.at.sample + static_cast<std::uint32_t>(s), first, op.u.as<T>() + i,
                    op.residual.empty() ? nullptr : op.residual.as<T>() + i, op.y.as<T>() + i,
                    std::min(kElementRun, sample - first));
    });
  });
}

void run(const Axpby& op, const Context& context) {
  context.team.runs(count_of(op.y), kElementRun, [&](std::int64_t i, std::int64_t end) {
    context.loops.axpby(op.a, op.x.f32() + i, op.b, op.y.f32() + i, end - i);
  });
}

void run(const SumSquares& op, const Context& context) {
  const auto block = static_cast<std::int64_t>(op.block);
  context.team.runs(count_of(op.x), block, [&](std::int64_t i, std::int64_t end) {
    op.sums[static_cast<std::size_t>(i / block)] =
        context.loops.sum_squares(op.x.f32() + i, end - i);
  });
}

}  // namespace concertina::cpu
