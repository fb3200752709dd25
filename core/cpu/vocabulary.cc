// The first and last kernels of a language model: token, position and type tables, and losses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cpu/run_op.h"

namespace concertina::cpu {

namespace {

std::int64_t position_of(const auto& op, std::int64_t row) {
  return row % op.t - (op.starts.empty() ? 0 : op.starts.i32()[row]);
}

std::int64_t type_of(const auto& op, std::int64_t row) {
  return op.types.empty() ? 0 : op.types.i32()[row];
}

}  // namespace

void run(const Embed& op, const Context& context) {
  const std::int64_t rows = count_of(op.tokens), c = count_of(op.x) / rows;
  typed(op.x.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(rows, kRowRun, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r)
        loops.embed(op.wte.f32() + op.tokens.i32()[r] * c,
                    op.wtt.empty() ? nullptr : op.wtt.f32() + type_of(op, r) * c,
                    op.wpe.empty() ? nullptr : op.wpe.f32() + position_of(op, r) * c,
                    op.x.as<T>() + r * c, c);
    });
  });
}

void run(const EmbedWeight& op, const Context& context) {
  const std::int64_t rows = count_of(op.tokens), c = count_of(op.dx) / rows;
  const auto columns = [&]<class T>(const ActivationLoops<T>& loops, std::int64_t i,
                                    std::int64_t n) {
    for (const View& table : {op.dwte, op.dwpe, op.dwtt})
      for (std::int64_t at = i; !op.accumulate && at < count_of(table); at += c)
        std::fill_n(table.f32() + at, n, 0.0F);
    for (std::int64_t r = 0; r < rows; ++r)
      loops.accumulate(op.dx.as<T>() + r * c + i, op.dwte.f32() + op.tokens.i32()[r] * c + i,
                       op.dwpe.empty() ? nullptr : op.dwpe.f32() + position_of(op, r) * c + i,
                       op.dwtt.empty() ? nullptr : op.dwtt.f32() + type_of(op, r) * c + i, n);
  };
  typed(op.dx.dtype, context.loops, [&](const auto& loops) {
    context.team.runs(c, kTableColumns,
                      [&](std::int64_t i, std::int64_t end) { columns(loops, i, end - i); });
  });
}

void run(const CrossEntropy& op, const Context& context) {
  const std::int64_t v = count_of(op.logits) / count_of(op.targets);
  typed(op.logits.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(count_of(op.targets), kRowRun, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r)
        op.row_loss.f32()[r] =
            loops.cross_entropy_row(op.logits.as<T>() + r * v, v, op.targets.i32()[r],
                                    op.loss_scale, op.smoothing, op.training);
    });
  });
}

namespace {

/// Log-softmax of values divided by a temperature, in fp64.
template <class T>
class LogSoftmax {
 public:
  LogSoftmax(const T* values, std::int64_t count, double temperature)
      : values_(values), temperature_(temperature) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t i = 0; i < count; ++i) top = std::max(top, scaled(i));
    for (std::int64_t i = 0; i < count; ++i) sum += std::exp(scaled(i) - top);
    log_sum_ = top + std::log(sum);
  }
  double at(std::int64_t i) const { return scaled(i) - log_sum_; }

 private:
  double scaled(std::int64_t i) const {
    return static_cast<double>(to_float(values_[i])) / temperature_;
  }
  const T* values_;
  double temperature_, log_sum_;
};

/// Returns the loss of a row of `v` logits, which it replaces with their gradient.
template <class T>
double distill_row(T* logits, const float* teacher, std::int64_t v, std::int32_t target,
                   const Distillation& op) {
  const double share = op.share, heat = op.temperature, smoothing = op.smoothing;
  const LogSoftmax<T> plain(logits, v, 1), soft(logits, v, heat);
  const LogSoftmax<float> taught(teacher, v, heat);
  double hard_loss = 0, soft_loss = 0;
  for (std::int64_t i = 0; i < v; ++i) {
    const double y = smoothing / static_cast<double>(v) + (i == target ? 1 - smoothing : 0);
    const double log_p = plain.at(i), log_s = soft.at(i), log_q = taught.at(i), q = std::exp(log_q);
    if (y > 0) hard_loss -= y * log_p;
    if (q > 0) soft_loss += q * (log_q - log_s);
    logits[i] = rounded<T>(static_cast<float>(
        static_cast<double>(op.loss_scale) *
        ((1 - share) * (std::exp(log_p) - y) + share * heat * (std::exp(log_s) - q))));
  }
  return (1 - share) * hard_loss + share * heat * heat * soft_loss;
}

}  // namespace

void run(const Distillation& op, const Context& context) {
  const std::int64_t v = count_of(op.logits) / count_of(op.targets);
  typed(op.logits.dtype, context.loops, [&]<class T>(const ActivationLoops<T>&) {
    context.team.runs(count_of(op.targets), kRowRun, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r) {
        T* const row = op.logits.as<T>() + r * v;
        const std::int32_t target = op.targets.i32()[r];
        if (target < 0) std::fill_n(row, v, rounded<T>(0.0F));
        op.row_loss.f32()[r] =
            target < 0
                ? 0
                : static_cast<float>(distill_row(row, op.teacher.f32() + r * v, v, target, op));
      }
    });
  });
}

void run(const SpanCrossEntropy& op, const Context& context) {
  typed(op.logits.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.each(count_of(op.starts), [&](std::int64_t s, int) {
      op.row_loss.f32()[s] =
          loops.span_cross_entropy(op.logits.as<T>() + s * 2 * op.t, op.t, op.starts.i32()[s],
                                   op.ends.i32()[s], op.loss_scale, op.smoothing, op.training);
    });
  });
}

void run(const ScoreLoss& op, const Context& context) {
  const std::int64_t rows = count_of(op.row_loss), k = count_of(op.logits) / rows;
  typed(op.logits.dtype, context.loops, [&]<class T>(const ActivationLoops<T>& loops) {
    context.team.runs(rows, kRowRun, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r)
        op.row_loss.f32()[r] =
            loops.score_loss_row(op.logits.as<T>() + r * k, op.scores.f32() + r * k, k,
                                 op.kind == ScoreLoss::Kind::binary, op.loss_scale, op.training);
    });
  });
}

}  // namespace concertina::cpu
