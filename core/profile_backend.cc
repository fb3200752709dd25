#include "core/profile_backend.h"

#include <chrono>
#include <tuple>

namespace concertina {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds the time until the end of the scope to up to two counters.
class Timer {
 public:
  explicit Timer(KernelTime& kernel, KernelTime* product = nullptr, double flops = 0)
      : kernel_(kernel), product_(product), flops_(flops), start_(Clock::now()) {}
  ~Timer() {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    add(kernel_, seconds);
    if (product_ != nullptr) add(*product_, seconds);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  void add(KernelTime& to, double seconds) const {
    ++to.calls;
    to.seconds += seconds;
    to.flops += flops_;
  }
  KernelTime& kernel_;
  KernelTime* product_;
  double flops_;
  Clock::time_point start_;
};

class ProfileLinear final : public Linear {
 public:
  ProfileLinear(std::unique_ptr<Linear> inner, const LinearShape& s, Profile& profile)
      : inner_(std::move(inner)),
        times_(profile.products[s]),
        pack_(profile.kernels["pack weights"]),
        forward_(profile.kernels["linear forward"]),
        input_(profile.kernels["linear input gradient"]),
        weight_(profile.kernels["linear weight gradient"]),
        flops_(2.0 * static_cast<double>(s.rows) * static_cast<double>(s.in) *
               static_cast<double>(s.out)) {}

  std::size_t packed_bytes() const override { return inner_->packed_bytes(); }
  void pack(View weight, void* packed) override {
    const Timer timer(pack_);
    inner_->pack(weight, packed);
  }
  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    const Timer timer(forward_, &times_.forward, flops_);
    inner_->forward(x, packed, bias, epilogue, y);
  }
  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    const Timer timer(input_, &times_.input, flops_);
    inner_->backward_input(dy, packed, epilogue, dx);
  }
  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    const Timer timer(weight_, &times_.weight, flops_);
    inner_->backward_weight(x, dy, dweight, dbias, accumulate);
  }

 private:
  std::unique_ptr<Linear> inner_;
  ProductTimes& times_;
  KernelTime &pack_, &forward_, &input_, &weight_;
  double flops_;
};

class ProfileAttention final : public Attention {
 public:
  ProfileAttention(std::unique_ptr<Attention> inner, const AttentionShape& s, Profile& profile)
      : inner_(std::move(inner)),
        forward_(profile.kernels["attention forward"]),
        backward_(profile.kernels["attention backward"]) {
    // Two products forward, four backward, over the keys that the mask leaves; the backward pass's
    // recomputation is not counted.
    const double pairs = static_cast<double>(s.tokens) * static_cast<double>(s.tokens + 1) / 2;
    flops_ = 4 * pairs * static_cast<double>(s.samples * s.heads * s.head_dim);
  }
  void forward(View qkv, View y, View lse) override {
    const Timer timer(forward_, nullptr, flops_);
    inner_->forward(qkv, y, lse);
  }
  void backward(View dy, View qkv, View y, View lse, View dqkv) override {
    const Timer timer(backward_, nullptr, 2 * flops_);
    inner_->backward(dy, qkv, y, lse, dqkv);
  }

 private:
  std::unique_ptr<Attention> inner_;
  KernelTime &forward_, &backward_;
  double flops_ = 0;
};

class ProfileBackend final : public Backend {
 public:
  ProfileBackend(Backend& inner, Profile& profile) : inner_(inner), profile_(profile) {}

  std::string describe() const override { return inner_.describe(); }
  void require(DType compute) const override { inner_.require(compute); }
  bool emulates(DType compute) const override { return inner_.emulates(compute); }
  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    return std::make_unique<ProfileLinear>(inner_.linear(shape), shape, profile_);
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    return std::make_unique<ProfileAttention>(inner_.attention(shape), shape, profile_);
  }
  std::size_t workspace_bytes() const override { return inner_.workspace_bytes(); }
  void set_workspace(void* workspace) override { inner_.set_workspace(workspace); }

  void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) override {
    const Timer timer(norm_);
    inner_.layer_norm(x, gamma, beta, y, mean, rstd);
  }
  void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd,
                                 View residual_grad, View dx) override {
    const Timer timer(norm_input_);
    inner_.layer_norm_backward_input(dy, x, gamma, mean, rstd, residual_grad, dx);
  }
  void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma, View dbeta,
                                  bool accumulate) override {
    const Timer timer(norm_weight_);
    inner_.layer_norm_backward_weight(dy, x, mean, rstd, dgamma, dbeta, accumulate);
  }
  void embedding(View tokens, View wte, View wpe, std::int64_t t, View x) override {
    const Timer timer(embedding_);
    inner_.embedding(tokens, wte, wpe, t, x);
  }
  void embedding_backward(View tokens, View dx, std::int64_t t, View dwte, View dwpe,
                          bool accumulate) override {
    const Timer timer(embedding_backward_);
    inner_.embedding_backward(tokens, dx, t, dwte, dwpe, accumulate);
  }
  void cross_entropy(View logits, View targets, float loss_scale, bool training,
                     View row_loss) override {
    const Timer timer(cross_entropy_);
    inner_.cross_entropy(logits, targets, loss_scale, training, row_loss);
  }
  void axpby(float a, View x, float b, View y) override {
    const Timer timer(axpby_);
    inner_.axpby(a, x, b, y);
  }
  void sum_squares(View x, std::size_t block, std::span<double> sums) override {
    const Timer timer(sum_squares_);
    inner_.sum_squares(x, block, sums);
  }
  void adamw(const AdamW& rule, View w, View m, View v, View g) override {
    const Timer timer(adamw_);
    inner_.adamw(rule, w, m, v, g);
  }
  Memory& memory() override { return inner_.memory(); }
  void synchronize() override { inner_.synchronize(); }

 private:
  KernelTime& kernel(std::string_view name) { return profile_.kernels[name]; }

  Backend& inner_;
  Profile& profile_;
  KernelTime& norm_ = kernel("layer norm");
  KernelTime& norm_input_ = kernel("layer norm input gradient");
  KernelTime& norm_weight_ = kernel("layer norm weight gradient");
  KernelTime& embedding_ = kernel("embedding");
  KernelTime& embedding_backward_ = kernel("embedding gradient");
  KernelTime& cross_entropy_ = kernel("cross entropy");
  KernelTime& axpby_ = kernel("gradient sums");
  KernelTime& sum_squares_ = kernel("norm");
  KernelTime& adamw_ = kernel("adamw");
};

}  // namespace

bool LinearOrder::operator()(const LinearShape& a, const LinearShape& b) const {
  const auto key = [](const LinearShape& s) {
    return std::tuple(s.rows, s.in, s.out, s.transposed, s.compute);
  };
  return key(a) < key(b);
}

void Profile::reset() {
  for (auto& [name, kernel] : kernels) kernel = {};
  for (auto& [shape, times] : products) times = {};
}

std::unique_ptr<Backend> make_profile_backend(Backend& inner, Profile& profile) {
  return std::make_unique<ProfileBackend>(inner, profile);
}

}  // namespace concertina
