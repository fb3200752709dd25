#include "tests/oracle_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "tests/assign.h"
#include "tests/oracle_families.h"
#include "tests/oracle_kernels.h"

namespace concertina {
namespace {

using oracle::Index;

Index rows_of(View per_row) {
  return static_cast<Index>(per_row.count);
}

/// The values of a view, written back, rounded to its type, when this ends.
class Out {
 public:
  explicit Out(View view) : view_(view), values_(to_floats(view)) {}
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() { assign(view_, values_); }
  float* data() { return values_.data(); }
  float& operator[](std::size_t i) { return values_[i]; }

 private:
  View view_;
  std::vector<float> values_;
};

class OracleLinear final : public Linear {
 public:
  using Linear::Linear;

  std::size_t packed_bytes() const override {
    return static_cast<std::size_t>(shape().in * shape().out) * sizeof(float);
  }

  void pack(const PackWeights& op) override {
    CONCERTINA_CHECK(op.weight.bytes() == packed_bytes(), "weight of {} bytes", op.weight.bytes());
    const bool narrow = shape().compute == DType::bf16;
    for (std::size_t i = 0; i < op.weight.count; ++i)
      static_cast<float*>(op.packed)[i] =
          narrow ? to_float(rounded<Bf16>(op.weight.f32()[i])) : op.weight.f32()[i];
  }

  void forward(const LinearForward& op) override {
    const std::vector<float> in = to_floats(op.x);
    std::vector<double> u(op.y.count);
    oracle::linear(shape(), in.data(), static_cast<const float*>(op.packed), op.bias.f32(),
                   u.data());
    Out out(op.y), operand(op.epilogue.operand);
    for (std::size_t i = 0; i < u.size(); ++i) {
      if (op.epilogue.kind == Epilogue::Kind::gelu) {
        operand[i] = static_cast<float>(oracle::gelu_slope(u[i]));
        u[i] = oracle::gelu(u[i]);
      }
      if (op.epilogue.kind == Epilogue::Kind::gelu_erf) {
        operand[i] = static_cast<float>(oracle::gelu_erf_slope(u[i]));
        u[i] = oracle::gelu_erf(u[i]);
      }
      if (op.epilogue.kind == Epilogue::Kind::residual) u[i] += static_cast<double>(operand[i]);
      out[i] = static_cast<float>(u[i]);
    }
  }

  void backward_input(const LinearInput& op) override {
    const std::vector<float> grad = to_floats(op.dy), operand = to_floats(op.epilogue.operand);
    std::vector<double> sums(op.dx.count);
    oracle::linear_backward_input(shape(), grad.data(), static_cast<const float*>(op.packed),
                                  sums.data());
    Out out(op.dx);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (op.epilogue.is_gelu()) sums[i] *= static_cast<double>(operand[i]);
      if (op.epilogue.kind == Epilogue::Kind::residual) sums[i] += static_cast<double>(operand[i]);
      out[i] = static_cast<float>(sums[i]);
    }
  }

  void backward_weight(const LinearWeight& op) override {
    const std::vector<float> in = to_floats(op.x), grad = to_floats(op.dy);
    oracle::linear_backward_weight(shape(), in.data(), grad.data(), op.dweight.f32(),
                                   op.dbias.f32(), op.accumulate);
  }
};

class OracleAttention final : public Attention {
 public:
  using Attention::Attention;

  void forward(const AttentionForward& op) override {
    const std::vector<float> in = to_floats(op.qkv);
    require_lengths(op.lengths);
    Out out(op.y);
    oracle::attention(shape(), in.data(), op.lengths.i32(), out.data(), op.lse.f32());
  }
  void backward(const AttentionBackward& op) override {
    const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.qkv);
    require_lengths(op.lengths);
    Out out(op.dqkv);
    oracle::attention_backward(shape(), grad.data(), in.data(), op.lengths.i32(), out.data());
  }
};

class OracleBackend final : public Backend {
 public:
  std::string describe() const override { return "oracle"; }
  void require(const Precision&) const override {}
  bool emulates(DType) const override { return true; }
  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    return std::make_unique<OracleLinear>(shape);
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    return std::make_unique<OracleAttention>(shape);
  }
  std::size_t workspace_bytes() const override { return 0; }
  void set_workspace(void*) override {}
  void forget_operators() override {}

  void run(const Op& op) override {
    std::visit([](const auto& kernel) { issue(kernel); }, op);
  }
  Memory& memory() override { return host_memory(); }
  KernelClock& clock() override { return host_clock(); }
  void synchronize() override {}

 private:
  template <OperatorOp T>
  static void issue(const T& op) {
    op.run();
  }
  static void issue(const LayerNorm& op) {
    const std::vector<float> in = to_floats(op.x);
    Out out(op.y);
    oracle::layer_norm(rows_of(op.mean), rows_of(op.gamma), in.data(), op.gamma.f32(),
                       op.beta.f32(), static_cast<double>(op.eps), out.data(), op.mean.f32(),
                       op.rstd.f32());
  }
  static void issue(const LayerNormInput& op) {
    const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.x),
                             residual = to_floats(op.residual_grad);
    Out out(op.dx);
    oracle::layer_norm_backward_input(rows_of(op.mean), rows_of(op.gamma), grad.data(), in.data(),
                                      op.gamma.f32(), op.mean.f32(), op.rstd.f32(),
                                      residual.empty() ? nullptr : residual.data(), out.data());
  }
  static void issue(const LayerNormWeight& op) {
    const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.x);
    oracle::layer_norm_backward_weight(rows_of(op.mean), rows_of(op.dgamma), grad.data(), in.data(),
                                       op.mean.f32(), op.rstd.f32(), op.dgamma.f32(),
                                       op.dbeta.f32(), op.accumulate);
  }
  static void issue(const RmsNorm& op) {
    const std::vector<float> in = to_floats(op.x);
    Out out(op.y);
    oracle::rms_norm(rows_of(op.rstd), rows_of(op.gamma), in.data(), op.gamma.f32(),
                     static_cast<double>(op.eps), out.data(), op.rstd.f32());
  }
  static void issue(const RmsNormInput& op) {
    const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.x),
                             residual = to_floats(op.residual_grad);
    Out out(op.dx);
    oracle::rms_norm_backward_input(rows_of(op.rstd), rows_of(op.gamma), grad.data(), in.data(),
                                    op.gamma.f32(), op.rstd.f32(),
                                    residual.empty() ? nullptr : residual.data(), out.data());
  }
  static void issue(const RmsNormWeight& op) {
    const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.x);
    oracle::rms_norm_backward_weight(rows_of(op.rstd), rows_of(op.dgamma), grad.data(), in.data(),
                                     op.rstd.f32(), op.dgamma.f32(), op.accumulate);
  }
  static void issue(const RotaryTable& op) {
    oracle::rotary_table(op.theta, op.tokens, op.head_dim, op.table.f32());
  }
  static void issue(const Rotate& op) {
    Out x(op.x);
    oracle::rotate(rows_of(op.x) / op.stride, op.stride, op.heads, op.head_dim, op.tokens,
                   op.table.f32(), op.inverse, x.data());
  }
  static void issue(const GatedSilu& op) {
    const std::vector<float> in = to_floats(op.u);
    Out out(op.y);
    oracle::gated_silu(rows_of(op.y) / op.width, op.width, in.data(), out.data());
  }
  static void issue(const GatedSiluInput& op) {
    const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.u);
    Out out(op.du);
    oracle::gated_silu_backward(rows_of(op.dy) / op.width, op.width, grad.data(), in.data(),
                                out.data());
  }
  static void issue(const Tanh& op) {
    Out out(op.y);
    const std::vector<float> in = to_floats(op.x);
    for (std::size_t i = 0; i < in.size(); ++i)
      out[i] = static_cast<float>(std::tanh(static_cast<double>(in[i])));
  }
  static void issue(const TanhInput& op) {
    const std::vector<float> grad = to_floats(op.dy), value = to_floats(op.y);
    Out out(op.dx);
    for (std::size_t i = 0; i < grad.size(); ++i)
      out[i] = static_cast<float>(static_cast<double>(grad[i]) *
                                  (1 - std::pow(static_cast<double>(value[i]), 2)));
  }
  static void issue(const GeluInput& op) {
    const std::vector<float> slope = to_floats(op.aux), dy = to_floats(op.dx);
    Out out(op.dx);
    for (std::size_t i = 0; i < dy.size(); ++i)
      out[i] = static_cast<float>(static_cast<double>(dy[i]) * static_cast<double>(slope[i]));
  }
  static void issue(const Embed& op) {
    const Index rows = rows_of(op.tokens), width = rows_of(op.x) / rows;
    std::vector<double> sums(op.x.count);
    const auto add = [&](View table, const auto& row_of) {
      if (!table.empty()) oracle::add_table_rows(rows, width, table.f32(), row_of, sums.data());
    };
    add(op.wte, [&](Index r) { return Index{op.tokens.i32()[r]}; });
    add(op.wpe, [&](Index r) { return r % op.t; });
    add(op.wtt, [&](Index r) { return Index{op.types.i32()[r]}; });
    assign(op.x, {sums.begin(), sums.end()});
  }
  static void issue(const EmbedWeight& op) {
    const Index rows = rows_of(op.tokens), width = rows_of(op.dx) / rows;
    const std::vector<float> dx = to_floats(op.dx);
    const auto sum = [&](View table, const auto& row_of) {
      if (!table.empty())
        oracle::sum_table_rows(rows, width, rows_of(table) / width, dx.data(), row_of, table.f32(),
                               op.accumulate);
    };
    sum(op.dwte, [&](Index r) { return Index{op.tokens.i32()[r]}; });
    sum(op.dwpe, [&](Index r) { return r % op.t; });
    sum(op.dwtt, [&](Index r) { return Index{op.types.i32()[r]}; });
  }
  static void issue(const ImagePatches& op) {
    Out out(op.patches);
    oracle::image_patches(rows_of(op.image) / (op.channels * op.height * op.width), op.channels,
                          op.height, op.width, op.patch, op.image.f32(), out.data());
  }
  static void issue(const JoinClass& op) {
    const std::vector<float> in = to_floats(op.x);
    Out out(op.y);
    oracle::join_class(rows_of(op.y) / rows_of(op.wpe), rows_of(op.wpe) / rows_of(op.cls),
                       rows_of(op.cls), in.data(), op.cls.f32(), op.wpe.f32(), out.data());
  }
  static void issue(const JoinClassWeight& op) {
    oracle::join_class_weight(rows_of(op.dy) / rows_of(op.dwpe),
                              rows_of(op.dwpe) / rows_of(op.dcls), rows_of(op.dcls),
                              to_floats(op.dy).data(), op.dcls.f32(), op.dwpe.f32(), op.accumulate);
  }
  static void issue(const SplitClass& op) {
    const std::vector<float> grad = to_floats(op.dy);
    Out out(op.dx);
    const Index all = rows_of(op.dy) / op.samples, rest = rows_of(op.dx) / op.samples;
    for (Index s = 0; s < op.samples; ++s)
      std::copy_n(grad.data() + s * all + (all - rest), rest, out.data() + s * rest);
  }
  static void issue(const FindLastRows& op) {
    for (std::size_t s = 0; s < op.places.count; ++s)
      op.places.i32()[s] =
          static_cast<std::int32_t>(std::clamp<Index>(op.lengths.i32()[s], 1, op.t) - 1);
  }
  static void issue(const FindTargets& op) {
    const Index all = rows_of(op.targets) / op.samples, most = rows_of(op.places) / op.samples;
    for (Index s = 0; s < op.samples; ++s) {
      std::vector<std::pair<Index, std::int32_t>> found;
      for (Index i = 0; i < all; ++i)
        if (const std::int32_t target = op.targets.i32()[s * all + i]; target >= 0)
          found.emplace_back(i, target);
      found.resize(static_cast<std::size_t>(most), {-1, -1});
      for (Index i = 0; i < most; ++i) {
        const auto& [place, target] = found[static_cast<std::size_t>(i)];
        op.places.i32()[s * most + i] = static_cast<std::int32_t>(place);
        op.taken.i32()[s * most + i] = target;
      }
    }
  }
  /// Calls f(first element in [S T,C], first element in [S M,C], C) for each row that is read.
  template <class F>
  static void each_row_read(View places, Index samples, Index all, Index read, F&& f) {
    const Index each = places.empty() ? 1 : rows_of(places) / samples;
    const Index width = read / (samples * each);
    for (Index row = 0; row < samples * each; ++row)
      if (const Index place = places.empty() ? 0 : places.i32()[row]; place >= 0)
        f(row / each * (all / samples) + place * width, row * width, width);
  }
  static void issue(const TakeRows& op) {
    const std::vector<float> in = to_floats(op.x);
    Out out(op.y);
    std::fill_n(out.data(), op.y.count, 0.0F);
    each_row_read(op.places, op.samples, rows_of(op.x), rows_of(op.y),
                  [&](Index all, Index read, Index width) {
                    std::copy_n(in.data() + all, width, out.data() + read);
                  });
  }
  static void issue(const SpreadRows& op) {
    const std::vector<float> grad = to_floats(op.dy);
    Out out(op.dx);
    std::fill_n(out.data(), op.dx.count, 0.0F);
    each_row_read(op.places, op.samples, rows_of(op.dx), rows_of(op.dy),
                  [&](Index all, Index read, Index width) {
                    std::copy_n(grad.data() + read, width, out.data() + all);
                  });
  }
  static void issue(const SpanCrossEntropy& op) {
    Out out(op.logits);
    oracle::span_cross_entropy(rows_of(op.starts), op.t, out.data(), op.starts.i32(), op.ends.i32(),
                               static_cast<double>(op.loss_scale), op.training, op.row_loss.f32());
  }
  static void issue(const CrossEntropy& op) {
    Out out(op.logits);
    oracle::cross_entropy(rows_of(op.targets), rows_of(op.logits) / rows_of(op.targets), out.data(),
                          op.targets.i32(), static_cast<double>(op.loss_scale), op.training,
                          op.row_loss.f32());
  }
  static void issue(const ApplyDropout& op) {
    const std::vector<float> in = to_floats(op.u), skip = to_floats(op.residual);
    Out out(op.y);
    oracle::dropout(op.mask, rows_of(op.u), in.data(), skip.empty() ? nullptr : skip.data(),
                    out.data());
  }
  static void issue(const Axpby& op) {
    for (std::size_t i = 0; i < op.y.count; ++i)
      op.y.f32()[i] =
          static_cast<float>(static_cast<double>(op.a) * static_cast<double>(op.x.f32()[i]) +
                             static_cast<double>(op.b) * static_cast<double>(op.y.f32()[i]));
  }
  static void issue(const SumSquares& op) {
    std::fill(op.sums.begin(), op.sums.end(), 0.0);
    for (std::size_t i = 0; i < op.x.count; ++i)
      op.sums[i / op.block] +=
          static_cast<double>(op.x.f32()[i]) * static_cast<double>(op.x.f32()[i]);
  }
  static void issue(const AdamWUpdate& op) {
    oracle::adamw(op.rule, op.w.count, op.w.f32(), op.m.f32(), op.v.f32(), op.g.f32());
  }
  static void issue(const SgdUpdate& op) {
    oracle::sgd(op.rule, op.w.count, op.w.f32(), op.m.f32(), op.g.f32());
  }
  static void issue(const LionUpdate& op) {
    oracle::lion(op.rule, op.w.count, op.w.f32(), op.m.f32(), op.g.f32());
  }
  static void issue(const LambUpdate& op) {
    oracle::lamb(op.rule, op.w.count, op.w.f32(), op.m.f32(), op.v.f32(), op.g.f32());
  }
  static void issue(const ScaleToUnit& op) {
    double sum = 0;
    for (const float x : to_floats(op.x)) sum += static_cast<double>(x) * static_cast<double>(x);
    const double norm = std::max(std::sqrt(sum), static_cast<double>(op.least));
    for (std::size_t i = 0; i < op.x.count; ++i)
      op.x.f32()[i] = static_cast<float>(static_cast<double>(op.x.f32()[i]) / norm);
  }
  static void issue(const CopyColumns& op) {
    const std::int64_t rows = static_cast<std::int64_t>(op.x.count) / op.x_columns;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < op.columns; ++j)
        op.y.f32()[r * op.y_columns + op.first_y + j] =
            op.x.f32()[r * op.x_columns + op.first_x + j];
  }
};

}  // namespace

std::unique_ptr<Backend> make_oracle_backend() {
  return std::make_unique<OracleBackend>();
}

}  // namespace concertina
