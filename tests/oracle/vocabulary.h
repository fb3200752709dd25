// Tables of tokens, and the losses, by their formulas: R rows, T tokens, C width, V vocabulary.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/model/batch.h"
#include "tests/oracle/values.h"

namespace concertina::oracle {

/// Rows of one table that are added to x: row r is row_of(r) of table[.,C].
template <class T, class F>
void add_table_rows(Index rows, Index width, const T* table, const F& row_of, double* x) {
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < width; ++c)
      x[r * width + c] += static_cast<double>(table[row_of(r) * width + c]);
}

/// The gradient of such a table.
template <class T, class G, class F>
void sum_table_rows(Index rows, Index width, Index table_rows, const G* dx, const F& row_of,
                    T* dtable, bool accumulate) {
  for (Index c = 0; c < width; ++c) {
    std::vector<double> sums(static_cast<std::size_t>(table_rows));
    for (Index r = 0; r < rows; ++r)
      sums[static_cast<std::size_t>(row_of(r))] += static_cast<double>(dx[r * width + c]);
    for (Index v = 0; v < table_rows; ++v)
      put(dtable[v * width + c], sums[static_cast<std::size_t>(v)], accumulate);
  }
}

template <class T>
void cross_entropy(Index rows, Index vocabulary, T* logits, const std::int32_t* targets,
                   double loss_scale, bool training, T* row_loss, double smoothing = 0) {
  for (Index r = 0; r < rows; ++r) {
    T* row = logits + r * vocabulary;
    const auto most = static_cast<double>(*std::max_element(row, row + vocabulary));
    double sum = 0;
    for (Index v = 0; v < vocabulary; ++v) sum += std::exp(static_cast<double>(row[v]) - most);
    const double lse = most + std::log(sum);
    const bool valid = targets[r] >= 0;
    const double each = smoothing / static_cast<double>(vocabulary);
    double loss = valid ? (1 - smoothing) * (lse - static_cast<double>(row[targets[r]])) : 0;
    for (Index v = 0; valid && v < vocabulary; ++v)
      loss += each * (lse - static_cast<double>(row[v]));
    row_loss[r] = static_cast<T>(loss);
    for (Index v = 0; training && v < vocabulary; ++v) {
      const double p = std::exp(static_cast<double>(row[v]) - lse);
      const double q = each + (v == targets[r] ? 1 - smoothing : 0);
      row[v] = static_cast<T>(valid ? (p - q) * loss_scale : 0);
    }
  }
}

/// The loss of a sample's logits[T,2], by the formula of cross_entropy() per side.
template <class T>
void span_cross_entropy(Index samples, Index tokens, T* logits, const std::int32_t* starts,
                        const std::int32_t* ends, double loss_scale, bool training, T* row_loss,
                        double smoothing = 0) {
  for (Index s = 0; s < samples; ++s) {
    double loss = 0;
    for (const Index side : {0, 1}) {
      T* sample = logits + s * 2 * tokens + side;
      std::vector<T> row(static_cast<std::size_t>(tokens));
      for (Index t = 0; t < tokens; ++t) row[static_cast<std::size_t>(t)] = sample[2 * t];
      std::int32_t target = (side == 0 ? starts : ends)[s];
      if (target >= tokens) target = -1;
      T half;
      cross_entropy(1, tokens, row.data(), &target, loss_scale / 2, training, &half, smoothing);
      loss += static_cast<double>(half) / 2;
      for (Index t = 0; t < tokens; ++t) sample[2 * t] = row[static_cast<std::size_t>(t)];
    }
    row_loss[s] = static_cast<T>(loss);
  }
}

/// The loss of logits[R,K] at scores[R,K]: squares, or by the probability that is a logit's.
template <class T>
void score_loss(Index rows, Index columns, T* logits, const float* scores, bool binary,
                double loss_scale, bool training, T* row_loss) {
  for (Index r = 0; r < rows; ++r) {
    double loss = 0;
    for (Index i = r * columns; i < (r + 1) * columns; ++i) {
      const auto x = static_cast<double>(logits[i]), y = static_cast<double>(scores[i]);
      const bool valid = scores[i] != kNoScore;
      const double p = 1 / (1 + std::exp(-x));
      if (valid)
        loss += binary ? y * std::log1p(std::exp(-x)) + (1 - y) * std::log1p(std::exp(x))
                       : std::pow(x - y, 2);
      if (training)
        logits[i] = static_cast<T>(valid ? loss_scale * (binary ? p - y : 2 * (x - y)) : 0);
    }
    row_loss[r] = static_cast<T>(loss);
  }
}

inline void issue(const Embed& op) {
  const Index rows = rows_of(op.tokens), width = rows_of(op.x) / rows;
  std::vector<double> sums(op.x.count);
  const auto add = [&](View table, const auto& row_of) {
    if (!table.empty()) add_table_rows(rows, width, table.f32(), row_of, sums.data());
  };
  add(op.wte, [&](Index r) { return Index{op.tokens.i32()[r]}; });
  add(op.wpe, [&](Index r) { return r % op.t; });
  add(op.wtt, [&](Index r) { return op.types.empty() ? 0 : Index{op.types.i32()[r]}; });
  assign(op.x, {sums.begin(), sums.end()});
}

inline void issue(const EmbedWeight& op) {
  const Index rows = rows_of(op.tokens), width = rows_of(op.dx) / rows;
  const std::vector<float> dx = to_floats(op.dx);
  const auto sum = [&](View table, const auto& row_of) {
    if (!table.empty())
      sum_table_rows(rows, width, rows_of(table) / width, dx.data(), row_of, table.f32(),
                     op.accumulate);
  };
  sum(op.dwte, [&](Index r) { return Index{op.tokens.i32()[r]}; });
  sum(op.dwpe, [&](Index r) { return r % op.t; });
  sum(op.dwtt, [&](Index r) { return op.types.empty() ? 0 : Index{op.types.i32()[r]}; });
}

inline void issue(const CrossEntropy& op) {
  Out out(op.logits);
  cross_entropy(rows_of(op.targets), rows_of(op.logits) / rows_of(op.targets), out.data(),
                op.targets.i32(), static_cast<double>(op.loss_scale), op.training,
                op.row_loss.f32(), static_cast<double>(op.smoothing));
}

inline void issue(const SpanCrossEntropy& op) {
  Out out(op.logits);
  span_cross_entropy(rows_of(op.starts), op.t, out.data(), op.starts.i32(), op.ends.i32(),
                     static_cast<double>(op.loss_scale), op.training, op.row_loss.f32(),
                     static_cast<double>(op.smoothing));
}

inline void issue(const ScoreLoss& op) {
  Out out(op.logits);
  const Index rows = rows_of(op.row_loss);
  score_loss(rows, rows_of(op.logits) / rows, out.data(), op.scores.f32(),
             op.kind == ScoreLoss::Kind::binary, static_cast<double>(op.loss_scale), op.training,
             op.row_loss.f32());
}

}  // namespace concertina::oracle
