// The kernels that are no operator's, on the CPU: each cuts its work into pieces for the team; the
// loops are in loops.cc. A new kernel is one overload here.
// Invariant: pieces do not depend on the number of threads, and none splits a sum.
#pragma once

#include "core/cpu/team.h"
#include "core/ops.h"

namespace concertina::cpu {

void run(const LayerNorm& op, const Context& context);
void run(const LayerNormInput& op, const Context& context);
void run(const LayerNormWeight& op, const Context& context);
void run(const RmsNorm& op, const Context& context);
void run(const RmsNormInput& op, const Context& context);
void run(const RmsNormWeight& op, const Context& context);

void run(const RotaryTable& op, const Context& context);
void run(const Rotate& op, const Context& context);

void run(const GatedSilu& op, const Context& context);
void run(const GatedSiluInput& op, const Context& context);
void run(const Tanh& op, const Context& context);
void run(const TanhInput& op, const Context& context);
void run(const GeluInput& op, const Context& context);

void run(const Embed& op, const Context& context);
void run(const EmbedWeight& op, const Context& context);
void run(const CrossEntropy& op, const Context& context);
void run(const SpanCrossEntropy& op, const Context& context);

void run(const ImagePatches& op, const Context& context);
void run(const JoinClass& op, const Context& context);
void run(const JoinClassWeight& op, const Context& context);
void run(const SplitClass& op, const Context& context);
void run(const FindLastRows& op, const Context& context);
void run(const FindTargets& op, const Context& context);
void run(const TakeRows& op, const Context& context);
void run(const SpreadRows& op, const Context& context);

void run(const ApplyDropout& op, const Context& context);
void run(const Axpby& op, const Context& context);
void run(const SumSquares& op, const Context& context);

void run(const AdamWUpdate& op, const Context& context);
void run(const SgdUpdate& op, const Context& context);
void run(const LionUpdate& op, const Context& context);
void run(const LambUpdate& op, const Context& context);
void run(const ScaleToUnit& op, const Context& context);
void run(const CopyColumns& op, const Context& context);

template <OperatorOp T>
void run(const T& op, const Context& /*context*/) {
  op.run();
}

}  // namespace concertina::cpu
