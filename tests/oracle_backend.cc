#include "tests/oracle_backend.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "tests/assign.h"
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
    CONCERTINA_CHECK(op.weight.bytes() == packed_bytes(), "weight of {} bytes",
                     op.weight.bytes());
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
      if (op.epilogue.kind == Epilogue::Kind::residual) u[i] += static_cast<double>(operand[i]);
      out[i] = static_cast<float>(u[i]);
    }
  }

  void backward_input(const LinearInput& op) override {
    CONCERTINA_CHECK(op.epilogue.kind != Epilogue::Kind::residual, "no such backward epilogue");
    const std::vector<float> grad = to_floats(op.dy), operand = to_floats(op.epilogue.operand);
    std::vector<double> sums(op.dx.count);
    oracle::linear_backward_input(shape(), grad.data(), static_cast<const float*>(op.packed),
                                  sums.data());
    Out out(op.dx);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (op.epilogue.kind == Epilogue::Kind::gelu) sums[i] *= static_cast<double>(operand[i]);
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
    Out out(op.y);
    oracle::attention(shape(), in.data(), out.data(), op.lse.f32());
  }
  void backward(const AttentionBackward& op) override {
    const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.qkv);
    Out out(op.dqkv);
    oracle::attention_backward(shape(), grad.data(), in.data(), out.data());
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
                       op.beta.f32(), out.data(), op.mean.f32(), op.rstd.f32());
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
  static void issue(const Embed& op) {
    Out out(op.x);
    oracle::embedding(rows_of(op.tokens), op.t, rows_of(op.x) / rows_of(op.tokens), op.tokens.i32(),
                      op.wte.f32(), op.wpe.f32(), out.data());
  }
  static void issue(const EmbedWeight& op) {
    const Index width = rows_of(op.dx) / rows_of(op.tokens);
    oracle::embedding_backward(rows_of(op.tokens), op.t, width, rows_of(op.dwte) / width,
                               op.tokens.i32(), to_floats(op.dx).data(), op.dwte.f32(),
                               op.dwpe.f32(), op.accumulate);
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
};

}  // namespace

std::unique_ptr<Backend> make_oracle_backend() {
  return std::make_unique<OracleBackend>();
}

}  // namespace concertina
