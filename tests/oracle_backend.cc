#include "tests/oracle_backend.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "tests/oracle_kernels.h"

namespace concertina {
namespace {

using oracle::Index;

Index rows_of(View per_row) {
  return static_cast<Index>(per_row.count);
}

class OracleLinear final : public Linear {
 public:
  explicit OracleLinear(const LinearShape& shape) : shape_(shape) {}

  std::size_t packed_bytes() const override {
    return static_cast<std::size_t>(shape_.in * shape_.out) * sizeof(float);
  }

  void pack(View weight, void* packed) override {
    CONCERTINA_CHECK(weight.bytes() == packed_bytes(), "weight of {} bytes", weight.bytes());
    std::memcpy(packed, weight.data, weight.bytes());
  }

  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    std::vector<double> u(y.count);
    oracle::linear(shape_, x.f32(), static_cast<const float*>(packed), bias.f32(), u.data());
    for (std::size_t i = 0; i < u.size(); ++i) {
      if (epilogue.kind == Epilogue::Kind::gelu) {
        epilogue.operand.f32()[i] = static_cast<float>(oracle::gelu_slope(u[i]));
        u[i] = oracle::gelu(u[i]);
      }
      if (epilogue.kind == Epilogue::Kind::residual)
        u[i] += static_cast<double>(epilogue.operand.f32()[i]);
      y.f32()[i] = static_cast<float>(u[i]);
    }
  }

  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    CONCERTINA_CHECK(epilogue.kind != Epilogue::Kind::residual, "no such backward epilogue");
    std::vector<double> sums(dx.count);
    oracle::linear_backward_input(shape_, dy.f32(), static_cast<const float*>(packed), sums.data());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (epilogue.kind == Epilogue::Kind::gelu)
        sums[i] *= static_cast<double>(epilogue.operand.f32()[i]);
      dx.f32()[i] = static_cast<float>(sums[i]);
    }
  }

  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    oracle::linear_backward_weight(shape_, x.f32(), dy.f32(), dweight.f32(), dbias.f32(),
                                   accumulate);
  }

 private:
  LinearShape shape_;
};

class OracleAttention final : public Attention {
 public:
  explicit OracleAttention(const AttentionShape& shape) : shape_(shape) {}

  void forward(View qkv, View y, View lse) override {
    oracle::attention(shape_, qkv.f32(), y.f32(), lse.f32());
  }
  void backward(View dy, View qkv, View, View, View dqkv) override {
    oracle::attention_backward(shape_, dy.f32(), qkv.f32(), dqkv.f32());
  }

 private:
  AttentionShape shape_;
};

class OracleBackend final : public Backend {
 public:
  std::string describe() const override { return "oracle"; }
  void require(DType compute) const override {
    if (compute != DType::f32)
      throw_input("the oracle computes in fp32 only", "numerics.compute", "fp32");
  }
  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    return std::make_unique<OracleLinear>(shape);
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    return std::make_unique<OracleAttention>(shape);
  }
  std::size_t workspace_bytes() const override { return 0; }
  void set_workspace(void*) override {}

  void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) override {
    oracle::layer_norm(rows_of(mean), rows_of(gamma), x.f32(), gamma.f32(), beta.f32(), y.f32(),
                       mean.f32(), rstd.f32());
  }
  void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd,
                                 View residual_grad, View dx) override {
    oracle::layer_norm_backward_input(rows_of(mean), rows_of(gamma), dy.f32(), x.f32(), gamma.f32(),
                                      mean.f32(), rstd.f32(), residual_grad.f32(), dx.f32());
  }
  void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma, View dbeta,
                                  bool accumulate) override {
    oracle::layer_norm_backward_weight(rows_of(mean), rows_of(dgamma), dy.f32(), x.f32(),
                                       mean.f32(), rstd.f32(), dgamma.f32(), dbeta.f32(),
                                       accumulate);
  }
  void embedding(View tokens, View wte, View wpe, std::int64_t t, View x) override {
    oracle::embedding(rows_of(tokens), t, rows_of(x) / rows_of(tokens), tokens.i32(), wte.f32(),
                      wpe.f32(), x.f32());
  }
  void embedding_backward(View tokens, View dx, std::int64_t t, View dwte, View dwpe,
                          bool accumulate) override {
    const Index width = rows_of(dx) / rows_of(tokens);
    oracle::embedding_backward(rows_of(tokens), t, width, rows_of(dwte) / width, tokens.i32(),
                               dx.f32(), dwte.f32(), dwpe.f32(), accumulate);
  }
  void cross_entropy(View logits, View targets, float loss_scale, bool training,
                     View row_loss) override {
    oracle::cross_entropy(rows_of(targets), rows_of(logits) / rows_of(targets), logits.f32(),
                          targets.i32(), static_cast<double>(loss_scale), training, row_loss.f32());
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
  void synchronize() override {}
};

}  // namespace

std::unique_ptr<Backend> make_oracle_backend() {
  return std::make_unique<OracleBackend>();
}

}  // namespace concertina
