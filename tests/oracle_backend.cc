#include "tests/oracle_backend.h"

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

using oracle::Out, oracle::Values, oracle::values_of;

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
    const Values u = oracle::linear(shape(), values_of(op.x), static_cast<const float*>(op.packed),
                                    values_of(op.bias));
    Out y(op.y), operand(op.epilogue.operand);
    for (std::size_t i = 0; i < u.size(); ++i) {
      y[i] = u[i] + (op.epilogue.kind == Epilogue::Kind::residual ? operand[i] : 0);
      if (!op.epilogue.is_activation()) continue;
      const oracle::Activation f = oracle::activation(op.epilogue.kind);
      y[i] = f.value(u[i]);
      operand[i] = f.slope(u[i]);
    }
  }

  void backward_input(const LinearInput& op) override {
    const Values sums = oracle::linear_backward_input(shape(), values_of(op.dy),
                                                      static_cast<const float*>(op.packed)),
                 operand = values_of(op.epilogue.operand);
    Out dx(op.dx);
    for (std::size_t i = 0; i < sums.size(); ++i)
      dx[i] = sums[i] * (op.epilogue.is_activation() ? operand[i] : 1) +
              (op.epilogue.kind == Epilogue::Kind::residual ? operand[i] : 0);
  }

  void backward_weight(const LinearWeight& op) override {
    oracle::linear_backward_weight(shape(), op);
  }
};

class OracleAttention final : public Attention {
 public:
  using Attention::Attention;

  void forward(const AttentionForward& op) override {
    const Values qkv = values_of(op.qkv);
    Out y(op.y);
    if (shape().capacity > 0) {
      Out cache(op.cache);
      return oracle::cached_attention(shape(), qkv, op.starts.i32(), cache, y);
    }
    Out lse(op.lse);
    oracle::attention(shape(), qkv, op.lengths.i32(), y, lse, op.mask);
  }
  void backward(const AttentionBackward& op) override {
    const Values dy = values_of(op.dy), qkv = values_of(op.qkv);
    Out dqkv(op.dqkv);
    oracle::attention_backward(shape(), dy, qkv, op.lengths.i32(), dqkv, op.mask);
  }
};

class OracleBackend final : public Backend {
 public:
  std::string describe() const override { return "oracle"; }
  void require(const Precision&) const override {}
  bool emulates(DType) const override { return true; }
  std::shared_ptr<Linear> linear(const LinearShape& shape) override {
    return std::make_unique<OracleLinear>(shape);
  }
  std::shared_ptr<Attention> attention(const AttentionShape& shape) override {
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
