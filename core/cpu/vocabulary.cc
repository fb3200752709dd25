// The ends of a language model: tables of tokens and positions, and the loss.
#include <algorithm>

#include "core/cpu/pieces.h"
#include "core/cpu/run_op.h"

namespace concertina::cpu {

void run(const Embed& op, const Context& context) {
  const std::int64_t t = op.t, c = count_of(op.wpe) / t;
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.tokens), kRowRun, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r)
        loops.add(op.wte.f32() + op.tokens.i32()[r] * c, op.wpe.f32() + r % t * c,
                  op.x.as<T>() + r * c, c);
    });
  });
}

void run(const EmbedWeight& op, const Context& context) {
  const std::int64_t t = op.t, c = count_of(op.dwpe) / t, rows = count_of(op.tokens);
  const auto columns = [&]<class T>(const ActivationLoops<T>& loops, std::int64_t i,
                                    std::int64_t n) {
    const auto clear = [&](View table) {
      if (op.accumulate) return;
      for (std::int64_t at = i; at < count_of(table); at += c)
        std::fill_n(table.f32() + at, n, 0.0F);
    };
    clear(op.dwte);
    clear(op.dwpe);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* g = op.dx.as<T>() + r * c + i;
      loops.accumulate(g, op.dwte.f32() + op.tokens.i32()[r] * c + i, n);
      loops.accumulate(g, op.dwpe.f32() + r % t * c + i, n);
    }
  };
  typed(op.dx.dtype, context.loops, [&](const auto& loops) {
    context.team.runs(c, kColumnRun,
                      [&](std::int64_t i, std::int64_t end) { columns(loops, i, end - i); });
  });
}

void run(const CrossEntropy& op, const Context& context) {
  const std::int64_t v = count_of(op.logits) / count_of(op.targets);
  typed(op.logits.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.targets), kRowRun, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r)
        op.row_loss.f32()[r] = loops.cross_entropy_row(
            op.logits.as<T>() + r * v, v, op.targets.i32()[r], op.loss_scale, op.training);
    });
  });
}

}  // namespace concertina::cpu
