// The CPU backend: cuts each kernel's work into pieces for the team; the loops are in loops.cc,
// the products in linear.cc.
#include "core/backend.h"

#include <fmt/format.h>

#include <cmath>

#include "core/cpu/isa.h"
#include "core/cpu/linear.h"
#include "core/cpu/product.h"
#include "core/error.h"

namespace concertina {
namespace cpu {
namespace {

using Int = std::int64_t;

constexpr Int kRowRun = 32;         // rows of one piece of a row-wise loop
constexpr Int kColumnRun = 64;      // columns of one piece of a sum over rows
constexpr Int kElementRun = 16384;  // elements of one piece of an elementwise loop

Int count_of(View view) {
  return static_cast<Int>(view.count);
}

class CpuAttention final : public Attention {
 public:
  CpuAttention(const AttentionShape& s, const LoopTable& loops, const Team& team,
               Workspace& workspace)
      : shape_(s), loops_(loops), team_(team), workspace_(workspace) {
    const Int c = s.heads * s.head_dim;
    head_ = {s.tokens, s.head_dim, 3 * c, c};
    workspace.need(loops.attention_scratch(head_, true));
    workspace.need(loops.attention_scratch(head_, false));
  }

  void forward(View qkv, View y, View lse) override {
    each_head([&](Int at, Int row, Int index, void* scratch) {
      const float* q = qkv.f32() + row * head_.stride + at;
      loops_.attention_forward(head_, q, q + head_.width, q + 2 * head_.width,
                               y.f32() + row * head_.width + at, lse.f32() + index * head_.tokens,
                               scratch);
    });
  }

  void backward(View dy, View qkv, View y, View lse, View dqkv) override {
    each_head([&](Int at, Int row, Int index, void* scratch) {
      const float* q = qkv.f32() + row * head_.stride + at;
      float* dq = dqkv.f32() + row * head_.stride + at;
      const Int out = row * head_.width + at;
      loops_.attention_backward(head_, q, q + head_.width, q + 2 * head_.width, y.f32() + out,
                                lse.f32() + index * head_.tokens, dy.f32() + out, dq,
                                dq + head_.width, dq + 2 * head_.width, scratch);
    });
  }

 private:
  // f(first column of the head, first row of the sample, sample * H + head, scratch)
  template <class F>
  void each_head(F&& f) {
    team_.each(shape_.samples * shape_.heads, [&](Int i, int thread) {
      f(i % shape_.heads * shape_.head_dim, i / shape_.heads * shape_.tokens, i,
        workspace_.of(thread));
    });
  }

  AttentionShape shape_;
  HeadShape head_;
  const LoopTable& loops_;
  const Team& team_;
  const Workspace& workspace_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, Isa isa)
      : isa_(isa), loops_(*isa.loops), team_(threads), workspace_(threads) {}

  std::string describe() const override {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("cpu: {} thread{}, {} loops, oneDNN {}.{}.{}", team_.threads(),
                       team_.threads() == 1 ? "" : "s", isa_.name, v->major, v->minor, v->patch);
  }

  void require(DType compute) const override {
    if (compute != DType::f32)
      throw_input(fmt::format("the CPU backend does not compute in {}", name_of(compute)),
                  "numerics.compute", "numerics.compute = \"fp32\"");
  }

  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    require(shape.compute);
    return make_linear(shape, loops_, team_, workspace_);
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    require(shape.compute);
    return std::make_unique<CpuAttention>(shape, loops_, team_, workspace_);
  }
  std::size_t workspace_bytes() const override { return workspace_.bytes(); }
  void set_workspace(void* workspace) override { workspace_.set(workspace); }

  void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) override {
    const Int c = count_of(gamma);
    team_.runs(count_of(mean), kRowRun, [&](Int r, Int end) {
      loops_.layer_norm(x.f32() + r * c, gamma.f32(), beta.f32(), y.f32() + r * c, mean.f32() + r,
                        rstd.f32() + r, end - r, c);
    });
  }

  void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd,
                                 View residual_grad, View dx) override {
    const Int c = count_of(gamma);
    team_.runs(count_of(mean), kRowRun, [&](Int r, Int end) {
      const float* residual = residual_grad.empty() ? nullptr : residual_grad.f32() + r * c;
      loops_.layer_norm_backward_input(dy.f32() + r * c, x.f32() + r * c, gamma.f32(),
                                       mean.f32() + r, rstd.f32() + r, residual, dx.f32() + r * c,
                                       end - r, c);
    });
  }

  void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma, View dbeta,
                                  bool accumulate) override {
    const Int c = count_of(dgamma);
    team_.runs(c, kColumnRun, [&](Int i, Int end) {
      loops_.layer_norm_backward_weight(dy.f32() + i, x.f32() + i, mean.f32(), rstd.f32(),
                                        dgamma.f32() + i, dbeta.f32() + i, count_of(mean), c,
                                        end - i, accumulate);
    });
  }

  void embedding(View tokens, View wte, View wpe, Int t, View x) override {
    const Int c = count_of(wpe) / t;
    team_.runs(count_of(tokens), kRowRun, [&](Int r, Int end) {
      for (; r < end; ++r)
        loops_.add(wte.f32() + tokens.i32()[r] * c, wpe.f32() + r % t * c, x.f32() + r * c, c);
    });
  }

  void embedding_backward(View tokens, View dx, Int t, View dwte, View dwpe,
                          bool accumulate) override {
    const Int c = count_of(dwpe) / t, rows = count_of(tokens);
    team_.runs(c, kColumnRun, [&](Int i, Int end) {
      const Int n = end - i;
      const auto clear = [&](View table) {
        if (accumulate) return;
        for (Int at = i; at < count_of(table); at += c) std::fill_n(table.f32() + at, n, 0.0F);
      };
      clear(dwte);
      clear(dwpe);
      for (Int r = 0; r < rows; ++r) {
        const float* g = dx.f32() + r * c + i;
        loops_.axpby(1.0F, g, 1.0F, dwte.f32() + tokens.i32()[r] * c + i, n);
        loops_.axpby(1.0F, g, 1.0F, dwpe.f32() + r % t * c + i, n);
      }
    });
  }

  void cross_entropy(View logits, View targets, float loss_scale, bool training,
                     View row_loss) override {
    const Int v = count_of(logits) / count_of(targets);
    team_.runs(count_of(targets), kRowRun, [&](Int r, Int end) {
      for (; r < end; ++r)
        row_loss.f32()[r] = loops_.cross_entropy_row(logits.f32() + r * v, v, targets.i32()[r],
                                                     loss_scale, training);
    });
  }

  void axpby(float a, View x, float b, View y) override {
    team_.runs(count_of(y), kElementRun,
               [&](Int i, Int end) { loops_.axpby(a, x.f32() + i, b, y.f32() + i, end - i); });
  }

  void sum_squares(View x, std::size_t block, std::span<double> sums) override {
    team_.runs(count_of(x), static_cast<Int>(block), [&](Int i, Int end) {
      sums[static_cast<std::size_t>(i) / block] = loops_.sum_squares(x.f32() + i, end - i);
    });
  }

  void adamw(const AdamW& rule, View w, View m, View v, View g) override {
    const double step = static_cast<double>(rule.step);
    const AdamWRule k{
        rule.lr,
        rule.beta1,
        rule.beta2,
        rule.eps,
        rule.lr * rule.weight_decay,
        rule.grad_scale,
        static_cast<float>(1 / (1 - std::pow(static_cast<double>(rule.beta1), step))),
        static_cast<float>(1 / std::sqrt(1 - std::pow(static_cast<double>(rule.beta2), step)))};
    team_.runs(count_of(w), kElementRun, [&](Int i, Int end) {
      loops_.adamw(k, w.f32() + i, m.f32() + i, v.f32() + i, g.f32() + i, end - i);
    });
  }

  void synchronize() override {}

 private:
  Isa isa_;
  const LoopTable& loops_;
  Team team_;
  Workspace workspace_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(int threads, std::string_view isa) {
  if (threads < 1) throw_input(fmt::format("{} threads", threads), "run.threads", "at least 1");
  return std::make_unique<cpu::CpuBackend>(threads, cpu::choose_isa(isa));
}

}  // namespace concertina
