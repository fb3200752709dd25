// Formulas of token tables and losses: R rows, T tokens, C width, V vocabulary.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/model/batch.h"
#include "tests/oracle/values.h"

namespace concertina::oracle {

/// Calls see(table, row_of) for each existing table of an embedding: row r of the output is the sum
/// of the rows row_of(r).
template <class Op, class F>
void each_table(const Op& op, View tokens_table, View places_table, View types_table,
                const F& see) {
  const auto visit = [&](View table, const auto& row_of) {
    if (!table.empty()) see(table, row_of);
  };
  visit(tokens_table, [&](Index r) { return Index{op.tokens.i32()[r]}; });
  visit(places_table, [&](Index r) { return r % op.t; });
  visit(types_table, [&](Index r) { return op.types.empty() ? 0 : Index{op.types.i32()[r]}; });
}

inline void issue(const Embed& op) {
  const Index rows = count_of(op.tokens), width = count_of(op.x) / rows;
  Out x(op.x);
  std::fill(x.begin(), x.end(), 0.0);
  each_table(op, op.wte, op.wpe, op.wtt, [&](View view, const auto& row_of) {
    const Values table = values_of(view);
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < width; ++c) x[r * width + c] += table[row_of(r) * width + c];
  });
}

inline void issue(const EmbedWeight& op) {
  const Index rows = count_of(op.tokens), width = count_of(op.dx) / rows;
  const Values dx = values_of(op.dx);
  each_table(op, op.dwte, op.dwpe, op.dwtt, [&](View view, const auto& row_of) {
    Out table(view);
    Values sums(table.size());
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < width; ++c) sums[row_of(r) * width + c] += dx[r * width + c];
    for (std::size_t i = 0; i < sums.size(); ++i) put(table[i], sums[i], op.accumulate);
  });
}

/// Returns the loss of a row, replaced by its gradient if `training`. Ignores targets below 0.
inline double cross_entropy(Values& row, Index target, double loss_scale, bool training,
                            double smoothing) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const double x : row) sum += std::exp(x - most);
  const double lse = most + std::log(sum), each = smoothing / static_cast<double>(row.size());
  double loss = 0;
  for (std::size_t v = 0; v < row.size(); ++v) {
    const double q = each + (static_cast<Index>(v) == target ? 1 - smoothing : 0);
    if (target >= 0) loss += q * (lse - row[v]);
    if (training) row[v] = target >= 0 ? (std::exp(row[v] - lse) - q) * loss_scale : 0;
  }
  return loss;
}

inline void issue(const CrossEntropy& op) {
  Out logits(op.logits), row_loss(op.row_loss);
  const Index vocabulary = count_of(op.logits) / count_of(op.targets);
  for (Index r = 0; r < count_of(op.targets); ++r) {
    const auto first = logits.begin() + r * vocabulary;
    Values row(first, first + vocabulary);
    row_loss[r] = cross_entropy(row, op.targets.i32()[r], op.loss_scale, op.training, op.smoothing);
    std::copy(row.begin(), row.end(), first);
  }
}

/// Adds the divergence from the teacher, which is a cross-entropy minus the teacher's entropy.
inline void issue(const Distillation& op) {
  Out logits(op.logits), row_loss(op.row_loss);
  const Values teacher = values_of(op.teacher);
  const Index rows = count_of(op.targets), v = count_of(op.logits) / rows;
  const double share = op.share, heat = op.temperature;
  for (Index r = 0; r < rows; ++r) {
    const Index target = op.targets.i32()[r];
    const auto first = logits.begin() + r * v;
    Values hard(first, first + v), student(first, first + v),
        taught(teacher.begin() + r * v, teacher.begin() + (r + 1) * v);
    for (double& x : student) x /= heat;
    for (double& x : taught) x /= heat;
    const double loss = cross_entropy(hard, target, op.loss_scale, true, op.smoothing);
    double divergence = 0;
    for (Index i = 0; i < v; ++i) {
      Values from = taught, to = student;
      const double log_q = -cross_entropy(from, i, 1, false, 0),
                   log_s = -cross_entropy(to, i, 1, false, 0), q = std::exp(log_q);
      divergence += q * (log_q - log_s);
      first[i] = target < 0 ? 0
                            : (1 - share) * hard[static_cast<std::size_t>(i)] +
                                  op.loss_scale * share * heat * (std::exp(log_s) - q);
    }
    row_loss[r] = target < 0 ? 0 : (1 - share) * loss + share * heat * heat * divergence;
  }
}

/// Computes the mean of the cross-entropies of both columns of logits[T,2].
inline void issue(const SpanCrossEntropy& op) {
  Out logits(op.logits), row_loss(op.row_loss);
  for (Index s = 0; s < count_of(op.starts); ++s) {
    row_loss[s] = 0;
    for (const Index side : {0, 1}) {
      const Index first = s * 2 * op.t + side, asked = (side == 0 ? op.starts : op.ends).i32()[s];
      Values row;
      for (Index t = 0; t < op.t; ++t) row.push_back(logits[first + 2 * t]);
      row_loss[s] += cross_entropy(row, asked < op.t ? asked : -1, op.loss_scale / 2, op.training,
                                   op.smoothing) /
                     2;
      for (Index t = 0; t < op.t; ++t) logits[first + 2 * t] = row[t];
    }
  }
}

/// Squared errors, or cross-entropy of the probability given by a logit.
inline void issue(const ScoreLoss& op) {
  const bool binary = op.kind == ScoreLoss::Kind::binary;
  const Values scores = values_of(op.scores);
  Out logits(op.logits), row_loss(op.row_loss);
  const Index columns = count_of(op.logits) / count_of(op.row_loss);
  std::fill(row_loss.begin(), row_loss.end(), 0.0);
  for (Index i = 0; i < count_of(op.logits); ++i) {
    const double x = logits[i], y = scores[i], p = 1 / (1 + std::exp(-x));
    const bool valid = op.scores.f32()[i] != kNoScore;
    if (valid)
      row_loss[i / columns] +=
          binary ? y * std::log1p(std::exp(-x)) + (1 - y) * std::log1p(std::exp(x))
                 : std::pow(x - y, 2);
    if (op.training) logits[i] = valid ? op.loss_scale * (binary ? p - y : 2 * (x - y)) : 0;
  }
}

}  // namespace concertina::oracle
