// Which instruction sets the loops and oneDNN's products use.
// Invariant: the order of sums depends on the instruction set and on nothing else of a processor
// that is asked for here; each kind includes those before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cpu/loops.h"

namespace concertina::cpu {

struct Isa {
  std::string_view name;
  const LoopTable* loops;
  bool bf16_products = false;  // products of bf16 go with it, where the processor has them
  const PanelAttention<Bf16>* pair_attention = nullptr;  // needs AVX512-BF16
  // Linear maps in fp32, where oneDNN would pack its operands in each call.
  const PanelProducts* panel_products = nullptr;
};

/// All that there are, least first: baseline, avx, avx2, avx512, avx512_bf16, amx_bf16.
std::vector<std::string_view> isa_names();

/// Instruction sets that this build, this machine and DNNL_MAX_CPU_ISA (oneDNN's own limit, which
/// this program's loops keep as well) have, best last.
std::vector<Isa> available_isas();

/// The named one, or the best if `name` is empty. Throws Error{bad_input} that lists those there.
Isa choose_isa(std::string_view name);

/// From now on oneDNN in this process goes no further than `name`, which is available. To be called
/// before its first use; later it is a failure if oneDNN may go further.
void bind_onednn(std::string_view name);

/// "2.6.3".
std::string onednn_version();

}  // namespace concertina::cpu
