// The CPU backend: cuts each kernel's work into pieces for the team; the loops are in loops.cc,
// the products in linear.cc and attention.cc.
#include "core/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cpu/attention.h"
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

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, Isa isa)
      : isa_(isa),
        context_{*isa.loops,
                 Team(threads),
                 Workspace(threads),
                 isa.bf16_products && has_bf16_products(),
                 has_bf16_products() && !has_amx_products() ? isa.pair_attention : nullptr,
                 has_packed_products() ? nullptr : isa.panel_products} {}

  std::string describe() const override {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("cpu: {} thread{}, {} loops, {}oneDNN {}.{}.{}, bf16 {}", team_.threads(),
                       team_.threads() == 1 ? "" : "s", isa_.name,
                       context_.panel_products != nullptr ? "fp32 linear maps by them, " : "",
                       v->major, v->minor, v->patch,
                       emulates(DType::bf16) ? "emulated by fp32"
                       : has_amx_products()  ? "by AMX"
                                             : "by AVX512-BF16");
  }

  void require(const Precision& precision) const override {
    static constexpr Precision kOurs[] = {DType::f32, DType::bf16};
    if (std::find(std::begin(kOurs), std::end(kOurs), precision) == std::end(kOurs))
      throw_input(fmt::format("the CPU backend does not compute in {}", name_of(precision)),
                  "numerics.compute",
                  fmt::format("one of: {}, or a GPU: run.device = \"cuda\"", list_names(kOurs)));
  }
  bool emulates(DType compute) const override {
    return compute == DType::bf16 && !context_.bf16_products;
  }

  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    require({shape.compute, shape.products});
    return make_linear(shape, context_);
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    require(shape.compute);
    return make_attention(shape, context_);
  }
  std::size_t workspace_bytes() const override { return context_.workspace.bytes(); }
  void set_workspace(void* workspace) override { context_.workspace.set(workspace); }
  void forget_operators() override { context_.workspace = Workspace(context_.team.threads()); }

  void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) override {
    const Int c = count_of(gamma);
    typed(x.dtype, [&]<class T>(const ActivationLoops<T>& loops) {
      team_.runs(count_of(mean), kRowRun, [&](Int r, Int end) {
        loops.layer_norm(x.as<T>() + r * c, gamma.f32(), beta.f32(), y.as<T>() + r * c,
                         mean.f32() + r, rstd.f32() + r, end - r, c);
      });
    });
  }

  void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd,
                                 View residual_grad, View dx) override {
    const Int c = count_of(gamma);
    typed(x.dtype, [&]<class T>(const ActivationLoops<T>& loops) {
      team_.runs(count_of(mean), kRowRun, [&](Int r, Int end) {
        const T* residual = residual_grad.empty() ? nullptr : residual_grad.as<T>() + r * c;
        loops.layer_norm_backward_input(dy.as<T>() + r * c, x.as<T>() + r * c, gamma.f32(),
                                        mean.f32() + r, rstd.f32() + r, residual,
                                        dx.as<T>() + r * c, end - r, c);
      });
    });
  }

  void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma, View dbeta,
                                  bool accumulate) override {
    const Int c = count_of(dgamma);
    typed(x.dtype, [&]<class T>(const ActivationLoops<T>& loops) {
      team_.runs(c, kColumnRun, [&](Int i, Int end) {
        loops.layer_norm_backward_weight(dy.as<T>() + i, x.as<T>() + i, mean.f32(), rstd.f32(),
                                         dgamma.f32() + i, dbeta.f32() + i, count_of(mean), c,
                                         end - i, accumulate);
      });
    });
  }

  void embedding(View tokens, View wte, View wpe, Int t, View x) override {
    const Int c = count_of(wpe) / t;
    typed(x.dtype, [&]<class T>(const ActivationLoops<T>& loops) {
      team_.runs(count_of(tokens), kRowRun, [&](Int r, Int end) {
        for (; r < end; ++r)
          loops.add(wte.f32() + tokens.i32()[r] * c, wpe.f32() + r % t * c, x.as<T>() + r * c, c);
      });
    });
  }

  void embedding_backward(View tokens, View dx, Int t, View dwte, View dwpe,
                          bool accumulate) override {
    const Int c = count_of(dwpe) / t, rows = count_of(tokens);
    const auto columns = [&]<class T>(const ActivationLoops<T>& loops, Int i, Int n) {
      const auto clear = [&](View table) {
        if (accumulate) return;
        for (Int at = i; at < count_of(table); at += c) std::fill_n(table.f32() + at, n, 0.0F);
      };
      clear(dwte);
      clear(dwpe);
      for (Int r = 0; r < rows; ++r) {
        const T* g = dx.as<T>() + r * c + i;
        loops.accumulate(g, dwte.f32() + tokens.i32()[r] * c + i, n);
        loops.accumulate(g, dwpe.f32() + r % t * c + i, n);
      }
    };
    typed(dx.dtype, [&](const auto& loops) {
      team_.runs(c, kColumnRun, [&](Int i, Int end) { columns(loops, i, end - i); });
    });
  }

  void cross_entropy(View logits, View targets, float loss_scale, bool training,
                     View row_loss) override {
    const Int v = count_of(logits) / count_of(targets);
    typed(logits.dtype, [&]<class T>(const ActivationLoops<T>& loops) {
      team_.runs(count_of(targets), kRowRun, [&](Int r, Int end) {
        for (; r < end; ++r)
          row_loss.f32()[r] = loops.cross_entropy_row(logits.as<T>() + r * v, v, targets.i32()[r],
                                                      loss_scale, training);
      });
    });
  }

  // In pieces of a sample, so that each starts at a counter.
  void dropout(const DropoutMask& mask, View u, View residual, View y) override {
    const auto [key0, key1] = Rng(mask.at.seed, Purpose::dropout).key();
    const DropoutRule rule{key0, key1, mask.at.step, mask.at.unit, mask.threshold(), mask.scale()};
    const Int sample = mask.sample_elements, pieces = (sample + kElementRun - 1) / kElementRun;
    typed(u.dtype, [&]<class T>(const ActivationLoops<T>& loops) {
      team_.each(count_of(u) / sample * pieces, [&](Int piece, int) {
        const Int s = piece / pieces, first = piece % pieces * kElementRun;
        const Int i = s * sample + first;
        loops.dropout(rule, mask.at.sample + static_cast<std::uint32_t>(s), first, u.as<T>() + i,
                      residual.empty() ? nullptr : residual.as<T>() + i, y.as<T>() + i,
                      std::min(kElementRun, sample - first));
      });
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
    const AdamWConstants k = constants_of(rule);
    team_.runs(count_of(w), kElementRun, [&](Int i, Int end) {
      loops_.adamw(k, w.f32() + i, m.f32() + i, v.f32() + i, g.f32() + i, end - i);
    });
  }

  Memory& memory() override { return host_memory(); }
  KernelClock& clock() override { return host_clock(); }
  void synchronize() override {}

 private:
  /// f(loops) with the loops over activations of this type.
  template <class F>
  void typed(DType activations, F&& f) const {
    if (activations == DType::bf16)
      f(loops_.bf16);
    else
      f(loops_.f32);
  }

  Isa isa_;
  Context context_;
  const LoopTable& loops_ = context_.loops;
  const Team& team_ = context_.team;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(int threads, std::string_view isa) {
  if (threads < 1) throw_input(fmt::format("{} threads", threads), "run.threads", "at least 1");
  return std::make_unique<cpu::CpuBackend>(threads, cpu::choose_isa(isa));
}

}  // namespace concertina
