#include "core/cpu/isa.h"

#include <fmt/format.h>

#include "core/cpu/product.h"
#include "core/error.h"

namespace concertina::cpu {

extern const LoopTable loops_baseline, loops_avx2, loops_avx512;
extern const PanelAttention<Bf16> pair_attention;
extern const PanelProducts panel_products;

std::vector<Isa> available_isas() {
  std::vector<Isa> isas{{"baseline", &loops_baseline}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      may_use(dnnl::cpu_isa::avx2))
    isas.push_back({"avx2", &loops_avx2, false, nullptr, &panel_products});
  if (may_use(dnnl::cpu_isa::avx512_core) && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    isas.push_back({"avx512", &loops_avx512, true});
  if (isas.back().bf16_products && __builtin_cpu_supports("avx512bf16") && has_bf16_products())
    isas.push_back({"avx512_bf16", &loops_avx512, true, &pair_attention});
  return isas;
}

Isa choose_isa(std::string_view name) {
  const std::vector<Isa> isas = available_isas();
  if (name.empty()) return isas.back();
  std::vector<std::string_view> names;
  for (const Isa& isa : isas) {
    if (isa.name == name) return isa;
    names.push_back(isa.name);
  }
  throw_input(fmt::format("instruction set '{}' is not available", name), "CPU backend",
              fmt::format("one of: {}", fmt::join(names, ", ")));
}

}  // namespace concertina::cpu
