// The instruction sets used by the loops and by oneDNN's products.
// Invariant: the order of sums depends on the chosen instruction set, but on no other property of
// the processor. Each kind includes the ones before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cpu/loops.h"

namespace concertina::cpu {

struct Isa {
  std::string_view name;
  const LoopTable* loops;
  bool bf16_products = false;  // uses bf16 products, if the processor has them
  const PanelAttention<Bf16>* pair_attention = nullptr;  // requires AVX512-BF16
  // For fp32 linear maps, where oneDNN would pack its operands in each call.
  const PanelProducts* panel_products = nullptr;
};

/// Returns all names in ascending order: baseline, avx, avx2, avx512, avx512_bf16, amx_bf16.
std::vector<std::string_view> isa_names();

/// Returns the instruction sets available in this build, on this machine and under DNNL_MAX_CPU_ISA
/// (oneDNN's limit, which also applies to this program's loops), best last.
std::vector<Isa> available_isas();

/// Returns the set called `name`; empty: the best. Throws Error{bad_input} if it is unavailable.
Isa choose_isa(std::string_view name);

/// Limits oneDNN in this process to `name`, which must be available. Must be called before
/// oneDNN is first used; later calls throw if oneDNN may exceed the limit.
void bind_onednn(std::string_view name);

/// Returns the version of oneDNN, such as "2.6.3".
std::string onednn_version();

}  // namespace concertina::cpu
