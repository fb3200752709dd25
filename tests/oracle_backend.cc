#include "tests/oracle_backend.h"

#include <vector>

#include "core/error.h"
#include "tests/oracle/activations.h"
#include "tests/oracle/elementwise.h"
#include "tests/oracle/norms.h"
#include "tests/oracle/products.h"
#include "tests/oracle/token_rows.h"
#include "tests/oracle/updates.h"
#include "tests/oracle/vocabulary.h"

namespace concertina {
namespace {

using oracle::Out;

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
      if (op.epilogue.is_activation()) {
        const oracle::Activation f = oracle::activation(op.epilogue.kind);
        operand[i] = static_cast<float>(f.slope(u[i]));
        u[i] = f.value(u[i]);
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
      if (op.epilogue.is_activation()) sums[i] *= static_cast<double>(operand[i]);
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
    require(op.lengths, op.mask, op.starts);
    Out out(op.y);
    oracle::attention(shape(), in.data(), op.lengths.i32(), out.data(), op.lse.f32(), op.mask);
  }
  void backward(const AttentionBackward& op) override {
    const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.qkv);
    require(op.lengths, op.mask, op.starts);
    Out out(op.dqkv);
    oracle::attention_backward(shape(), grad.data(), in.data(), op.lengths.i32(), out.data(),
                               op.mask);
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
    std::visit([](const auto& kernel) { oracle::issue(kernel); }, op);
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
