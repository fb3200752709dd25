// Which instruction set the loops use on this machine. ONEDNN_MAX_CPU_ISA (AVX2, AVX512_CORE, ...:
// oneDNN's own variable) holds our loops to what it holds oneDNN to, for measurements of processors
// that have no more.
#pragma once

#include <string_view>
#include <vector>

#include "core/cpu/kernels.h"

namespace concertina::cpu {

struct Isa {
  std::string_view name;
  const LoopTable* loops;
  bool bf16_products = false;  // products of bf16 go with it, where the processor has them
  const PanelAttention<Bf16>* pair_attention = nullptr;  // needs AVX512-BF16
  // Linear maps in fp32, where oneDNN would pack its operands in each call.
  const PanelProducts* panel_products = nullptr;
};

/// Instruction sets that this build, this machine and oneDNN's limit allow, best last.
std::vector<Isa> available_isas();

/// The named one, or the best if `name` is empty. Throws Error{bad_input} that lists those there.
Isa choose_isa(std::string_view name);

}  // namespace concertina::cpu
