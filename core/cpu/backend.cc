// The CPU backend: its environment and operators. Its other kernels are in run_op.h.
#include "core/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/operators.h"
#include "core/cpu/product.h"
#include "core/cpu/run_op.h"
#include "core/error.h"

namespace concertina {
namespace cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, Isa isa)
      : isa_(isa),
        context_{*isa.loops,
                 Team(threads),
                 Workspace(threads),
                 isa.bf16_products && has_bf16_products(),
                 has_bf16_products() && !has_amx_products() ? isa.pair_attention : nullptr,
                 has_bf16_products() ? isa.pair_attention : nullptr,
                 has_packed_products() ? nullptr : isa.panel_products} {}

  std::string describe() const override {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("cpu: {} thread{}, {} loops, {}oneDNN {}.{}.{}, bf16 {}",
                       context_.team.threads(), context_.team.threads() == 1 ? "" : "s", isa_.name,
                       context_.panel_products != nullptr ? "own fp32 linear maps, " : "", v->major,
                       v->minor, v->patch,
                       emulates(DType::bf16) ? "emulated by fp32"
                       : has_amx_products()  ? "by AMX"
                                             : "by AVX512-BF16");
  }

  void require(const Precision& precision) const override {
    static constexpr Precision kOurs[] = {DType::f32, DType::bf16};
    if (std::find(std::begin(kOurs), std::end(kOurs), precision) == std::end(kOurs))
      throw_input(fmt::format("the CPU backend does not support {}", name_of(precision)),
                  "numerics.compute",
                  fmt::format("one of: {}, or a GPU: run.device = \"cuda\"", list_names(kOurs)));
  }
  bool emulates(DType compute) const override {
    return compute == DType::bf16 && !context_.bf16_products;
  }

  std::shared_ptr<Linear> linear(const LinearShape& shape) override {
    require({shape.compute, shape.products});
    return make_linear(shape, context_);
  }
  std::shared_ptr<Attention> attention(const AttentionShape& shape) override {
    require(shape.compute);
    return make_attention(shape, context_);
  }
  std::size_t workspace_bytes() const override { return context_.workspace.bytes(); }
  void set_workspace(void* workspace) override { context_.workspace.set(workspace); }
  void forget_operators() override { context_.workspace = Workspace(context_.team.threads()); }

  void run(const Op& op) override {
    std::visit([this](const auto& kernel) { cpu::run(kernel, context_); }, op);
  }

  Memory& memory() override { return host_memory(); }
  KernelClock& clock() override { return host_clock(); }
  void synchronize() override {}

 private:
  Isa isa_;
  Context context_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(int threads, std::string_view isa) {
  if (threads < 1)
    throw_input(fmt::format("run.threads = {} is out of range", threads), "run.threads",
                "at least 1");
  return std::make_unique<cpu::CpuBackend>(threads, cpu::choose_isa(isa));
}

}  // namespace concertina
