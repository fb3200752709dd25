// A backend around another one: it forwards every call, and a hook sees each kernel before it is
// issued and after. To time kernels, to move their tensors, to watch what they touch.
// Invariant: calls reach the inner backend in their order, with the views that the hook leaves.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>

#include "core/backend.h"

namespace concertina {

enum class Kernel {
  pack,
  linear_forward,
  linear_input,
  linear_weight,
  attention_forward,
  attention_backward,
  layer_norm,
  layer_norm_input,
  layer_norm_weight,
  embedding,
  embedding_backward,
  cross_entropy,
  dropout,
  axpby,
  sum_squares,
  adamw,
};

/// The names of the kernels, by Kernel.
inline constexpr std::array<std::string_view, 16> kKernelNames{
    "pack weights",
    "linear forward",
    "linear input gradient",
    "linear weight gradient",
    "attention forward",
    "attention backward",
    "layer norm",
    "layer norm input gradient",
    "layer norm weight gradient",
    "embedding",
    "embedding gradient",
    "cross entropy",
    "dropout",
    "gradient sums",
    "norm",
    "adamw",
};

/// The packed weights of a linear map.
struct PackedWeights {
  const LinearShape& shape;
  const void*& data;
  std::size_t bytes;
};

/// One kernel, about to be issued. A hook may put another buffer in the place of any of these: all
/// of them may be read, and all but packed weights that are used, written.
struct KernelCall {
  Kernel kernel;
  std::initializer_list<View*> views;  // empty ones too
  double flops = 0;                    // of products, as really computed
  const PackedWeights* packed = nullptr;
};

class KernelHook {
 public:
  virtual ~KernelHook() = default;
  /// `call` is gone when this returns.
  virtual void before(const KernelCall& call) = 0;
  virtual void after() = 0;
};

/// While a kernel is issued.
class Around {
 public:
  Around(KernelHook& hook, const KernelCall& call) : hook_(hook) { hook_.before(call); }
  ~Around() { hook_.after(); }
  Around(const Around&) = delete;
  Around& operator=(const Around&) = delete;

 private:
  KernelHook& hook_;
};

class LinearAround final : public Linear {
 public:
  LinearAround(std::unique_ptr<Linear> inner, const LinearShape& shape, KernelHook& hook)
      : inner_(std::move(inner)),
        shape_(shape),
        flops_(2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.in) *
               static_cast<double>(shape.out)),
        hook_(hook) {}

  std::size_t packed_bytes() const override { return inner_->packed_bytes(); }
  void pack(View weight, void* packed) override {
    const void* at = packed;
    const PackedWeights weights{shape_, at, packed_bytes()};
    const Around around(hook_, {Kernel::pack, {&weight}, 0, &weights});
    inner_->pack(weight, const_cast<void*>(at));  // the caller's, or the hook's in its place
  }
  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    const PackedWeights weights{shape_, packed, packed_bytes()};
    const Around around(
        hook_, {Kernel::linear_forward, {&x, &bias, &epilogue.operand, &y}, flops_, &weights});
    inner_->forward(x, packed, bias, epilogue, y);
  }
  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    const PackedWeights weights{shape_, packed, packed_bytes()};
    const Around around(hook_,
                        {Kernel::linear_input, {&dy, &epilogue.operand, &dx}, flops_, &weights});
    inner_->backward_input(dy, packed, epilogue, dx);
  }
  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    const void* none = nullptr;
    const PackedWeights weights{shape_, none, 0};
    const Around around(hook_,
                        {Kernel::linear_weight, {&x, &dy, &dweight, &dbias}, flops_, &weights});
    inner_->backward_weight(x, dy, dweight, dbias, accumulate);
  }

 private:
  std::unique_ptr<Linear> inner_;
  LinearShape shape_;
  double flops_;
  KernelHook& hook_;
};

class AttentionAround final : public Attention {
 public:
  AttentionAround(std::unique_ptr<Attention> inner, const AttentionShape& s, KernelHook& hook)
      : inner_(std::move(inner)), hook_(hook) {
    // Two products forward, four backward, over the keys that the mask leaves; the backward pass's
    // recomputation is not counted.
    const double pairs = static_cast<double>(s.tokens) * static_cast<double>(s.tokens + 1) / 2;
    flops_ = 4 * pairs * static_cast<double>(s.samples * s.heads * s.head_dim);
  }
  void forward(View qkv, View y, View lse) override {
    const Around around(hook_, {Kernel::attention_forward, {&qkv, &y, &lse}, flops_});
    inner_->forward(qkv, y, lse);
  }
  void backward(View dy, View qkv, View y, View lse, View dqkv) override {
    const Around around(hook_,
                        {Kernel::attention_backward, {&dy, &qkv, &y, &lse, &dqkv}, 2 * flops_});
    inner_->backward(dy, qkv, y, lse, dqkv);
  }

 private:
  std::unique_ptr<Attention> inner_;
  double flops_ = 0;
  KernelHook& hook_;
};

class BackendAround : public Backend, public KernelHook {
 public:
  explicit BackendAround(Backend& inner) : inner_(inner) {}  // which outlives it
  explicit BackendAround(std::unique_ptr<Backend> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  std::string describe() const override { return inner_.describe(); }
  void require(const Precision& precision) const override { inner_.require(precision); }
  bool emulates(DType compute) const override { return inner_.emulates(compute); }
  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    return std::make_unique<LinearAround>(inner_.linear(shape), shape, *this);
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    return std::make_unique<AttentionAround>(inner_.attention(shape), shape, *this);
  }
  std::size_t workspace_bytes() const override { return inner_.workspace_bytes(); }
  void set_workspace(void* workspace) override { inner_.set_workspace(workspace); }

  void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) override {
    const Around around(*this, {Kernel::layer_norm, {&x, &gamma, &beta, &y, &mean, &rstd}});
    inner_.layer_norm(x, gamma, beta, y, mean, rstd);
  }
  void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd,
                                 View residual_grad, View dx) override {
    const Around around(
        *this, {Kernel::layer_norm_input, {&dy, &x, &gamma, &mean, &rstd, &residual_grad, &dx}});
    inner_.layer_norm_backward_input(dy, x, gamma, mean, rstd, residual_grad, dx);
  }
  void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma, View dbeta,
                                  bool accumulate) override {
    const Around around(*this,
                        {Kernel::layer_norm_weight, {&dy, &x, &mean, &rstd, &dgamma, &dbeta}});
    inner_.layer_norm_backward_weight(dy, x, mean, rstd, dgamma, dbeta, accumulate);
  }
  void embedding(View tokens, View wte, View wpe, std::int64_t t, View x) override {
    const Around around(*this, {Kernel::embedding, {&tokens, &wte, &wpe, &x}});
    inner_.embedding(tokens, wte, wpe, t, x);
  }
  void embedding_backward(View tokens, View dx, std::int64_t t, View dwte, View dwpe,
                          bool accumulate) override {
    const Around around(*this, {Kernel::embedding_backward, {&tokens, &dx, &dwte, &dwpe}});
    inner_.embedding_backward(tokens, dx, t, dwte, dwpe, accumulate);
  }
  void cross_entropy(View logits, View targets, float loss_scale, bool training,
                     View row_loss) override {
    const Around around(*this, {Kernel::cross_entropy, {&logits, &targets, &row_loss}});
    inner_.cross_entropy(logits, targets, loss_scale, training, row_loss);
  }
  void dropout(const DropoutMask& mask, View u, View residual, View y) override {
    const Around around(*this, {Kernel::dropout, {&u, &residual, &y}});
    inner_.dropout(mask, u, residual, y);
  }
  void axpby(float a, View x, float b, View y) override {
    const Around around(*this, {Kernel::axpby, {&x, &y}});
    inner_.axpby(a, x, b, y);
  }
  void sum_squares(View x, std::size_t block, std::span<double> sums) override {
    const Around around(*this, {Kernel::sum_squares, {&x}});
    inner_.sum_squares(x, block, sums);
  }
  void adamw(const AdamW& rule, View w, View m, View v, View g) override {
    const Around around(*this, {Kernel::adamw, {&w, &m, &v, &g}});
    inner_.adamw(rule, w, m, v, g);
  }
  // repeat() stays that of Backend: the hook sees every kernel.
  void forget_operators() override { inner_.forget_operators(); }
  void forget_passes() override { inner_.forget_passes(); }
  PassCounts pass_counts() const override { return inner_.pass_counts(); }
  Memory& memory() override { return inner_.memory(); }
  KernelClock& clock() override { return inner_.clock(); }
  void synchronize() override { inner_.synchronize(); }

 protected:
  Backend& inner() { return inner_; }

 private:
  std::unique_ptr<Backend> owned_;
  Backend& inner_;
};

}  // namespace concertina
