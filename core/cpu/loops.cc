// Fused loops between the products, compiled once per instruction set (loops.h).
#define CONCERTINA_LOOP_BODIES
#include "core/cpu/loops.h"

namespace concertina::cpu {

// Defined for the same instruction set in panel_attention.cc and attention_loops.cc.
extern const PanelAttention<float> CONCERTINA_PASTE(panel_attention_, CONCERTINA_ISA);
extern const AttentionLoops CONCERTINA_PASTE(attention_loops_, CONCERTINA_ISA);

namespace {

#define CONCERTINA_TYPED_ENTRY(result, name, parameters) .name = name<T>,
template <class T>
constexpr ActivationLoops<T> kActivationLoops{
    CONCERTINA_LOOPS(CONCERTINA_TYPED_ENTRY, CONCERTINA_NO_LOOP)};

}  // namespace

#define CONCERTINA_ENTRY(result, name, parameters) .name = name,
extern const LoopTable CONCERTINA_PASTE(loops_, CONCERTINA_ISA);
const LoopTable CONCERTINA_PASTE(loops_, CONCERTINA_ISA) = {
    .f32 = kActivationLoops<float>,
    .bf16 = kActivationLoops<Bf16>,
    .attention_f32 = &CONCERTINA_PASTE(panel_attention_, CONCERTINA_ISA),
    .attention_bf16 = &CONCERTINA_PASTE(attention_loops_, CONCERTINA_ISA),
    CONCERTINA_LOOPS(CONCERTINA_NO_LOOP, CONCERTINA_ENTRY)};

}  // namespace concertina::cpu
