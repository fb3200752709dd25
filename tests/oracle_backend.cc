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
  explicit OracleLinear(const LinearShape& shape) : shape_(shape) {}

  std::size_t packed_bytes() const override {
    return static_cast<std::size_t>(shape_.in * shape_.out) * sizeof(float);
  }

  void pack(View weight, void* packed) override {
    CONCERTINA_CHECK(weight.bytes() == packed_bytes(), "weight of {} bytes", weight.bytes());
    const bool narrow = shape_.compute == DType::bf16;
    for (std::size_t i = 0; i < weight.count; ++i)
      static_cast<float*>(packed)[i] =
          narrow ? to_float(rounded<Bf16>(weight.f32()[i])) : weight.f32()[i];
  }

  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    const std::vector<float> in = to_floats(x);
    std::vector<double> u(y.count);
    oracle::linear(shape_, in.data(), static_cast<const float*>(packed), bias.f32(), u.data());
    Out out(y), operand(epilogue.operand);
    for (std::size_t i = 0; i < u.size(); ++i) {
      if (epilogue.kind == Epilogue::Kind::gelu) {
        operand[i] = static_cast<float>(oracle::gelu_slope(u[i]));
        u[i] = oracle::gelu(u[i]);
      }
      if (epilogue.kind == Epilogue::Kind::residual) u[i] += static_cast<double>(operand[i]);
      out[i] = static_cast<float>(u[i]);
    }
  }

  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    CONCERTINA_CHECK(epilogue.kind != Epilogue::Kind::residual, "no such backward epilogue");
    const std::vector<float> grad = to_floats(dy), operand = to_floats(epilogue.operand);
    std::vector<double> sums(dx.count);
    oracle::linear_backward_input(shape_, grad.data(), static_cast<const float*>(packed),
                                  sums.data());
    Out out(dx);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (epilogue.kind == Epilogue::Kind::gelu) sums[i] *= static_cast<double>(operand[i]);
      out[i] = static_cast<float>(sums[i]);
    }
  }

  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    const std::vector<float> in = to_floats(x), grad = to_floats(dy);
    oracle::linear_backward_weight(shape_, in.data(), grad.data(), dweight.f32(), dbias.f32(),
                                   accumulate);
  }

 private:
  LinearShape shape_;
};

class OracleAttention final : public Attention {
 public:
  explicit OracleAttention(const AttentionShape& shape) : shape_(shape) {}

  void forward(View qkv, View y, View lse) override {
    const std::vector<float> in = to_floats(qkv);
    Out out(y);
    oracle::attention(shape_, in.data(), out.data(), lse.f32());
  }
  void backward(View dy, View qkv, View, View, View dqkv) override {
    const std::vector<float> grad = to_floats(dy), in = to_floats(qkv);
    Out out(dqkv);
    oracle::attention_backward(shape_, grad.data(), in.data(), out.data());
  }

 private:
  AttentionShape shape_;
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

  void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) override {
    const std::vector<float> in = to_floats(x);
    Out out(y);
    oracle::layer_norm(rows_of(mean), rows_of(gamma), in.data(), gamma.f32(), beta.f32(),
                       out.data(), mean.f32(), rstd.f32());
  }
  void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd,
                                 View residual_grad, View dx) override {
    const std::vector<float> grad = to_floats(dy), in = to_floats(x),
                             residual = to_floats(residual_grad);
    Out out(dx);
    oracle::layer_norm_backward_input(rows_of(mean), rows_of(gamma), grad.data(), in.data(),
                                      gamma.f32(), mean.f32(), rstd.f32(),
                                      residual.empty() ? nullptr : residual.data(), out.data());
  }
  void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma, View dbeta,
                                  bool accumulate) override {
    const std::vector<float> grad = to_floats(dy), in = to_floats(x);
    oracle::layer_norm_backward_weight(rows_of(mean), rows_of(dgamma), grad.data(), in.data(),
                                       mean.f32(), rstd.f32(), dgamma.f32(), dbeta.f32(),
                                       accumulate);
  }
  void embedding(View tokens, View wte, View wpe, std::int64_t t, View x) override {
    Out out(x);
    oracle::embedding(rows_of(tokens), t, rows_of(x) / rows_of(tokens), tokens.i32(), wte.f32(),
                      wpe.f32(), out.data());
  }
  void embedding_backward(View tokens, View dx, std::int64_t t, View dwte, View dwpe,
                          bool accumulate) override {
    const Index width = rows_of(dx) / rows_of(tokens);
    oracle::embedding_backward(rows_of(tokens), t, width, rows_of(dwte) / width, tokens.i32(),
                               to_floats(dx).data(), dwte.f32(), dwpe.f32(), accumulate);
  }
  void cross_entropy(View logits, View targets, float loss_scale, bool training,
                     View row_loss) override {
    Out out(logits);
    oracle::cross_entropy(rows_of(targets), rows_of(logits) / rows_of(targets), out.data(),
                          targets.i32(), static_cast<double>(loss_scale), training, row_loss.f32());
  }
  void dropout(const DropoutMask& mask, View u, View residual, View y) override {
    const std::vector<float> in = to_floats(u), skip = to_floats(residual);
    Out out(y);
    oracle::dropout(mask, rows_of(u), in.data(), skip.empty() ? nullptr : skip.data(), out.data());
  }
  void axpby(float a, View x, float b, View y) override {
    for (std::size_t i = 0; i < y.count; ++i)
      y.f32()[i] = static_cast<float>(static_cast<double>(a) * static_cast<double>(x.f32()[i]) +
                                      static_cast<double>(b) * static_cast<double>(y.f32()[i]));
  }
  void sum_squares(View x, std::size_t block, std::span<double> sums) override {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t i = 0; i < x.count; ++i)
      sums[i / block] += static_cast<double>(x.f32()[i]) * static_cast<double>(x.f32()[i]);
  }
  void adamw(const AdamW& rule, View w, View m, View v, View g) override {
    oracle::adamw(rule, w.count, w.f32(), m.f32(), v.f32(), g.f32());
  }
  Memory& memory() override { return host_memory(); }
  KernelClock& clock() override { return host_clock(); }
  void synchronize() override {}
};

}  // namespace

std::unique_ptr<Backend> make_oracle_backend() {
  return std::make_unique<OracleBackend>();
}

}  // namespace concertina
