// cuDNN as far as the choice of attention's kernels goes: there or not, with plans or without.
#pragma once

#include <string>

namespace concertina::emulation {

/// Why there is no cuDNN (as at first); empty: there is one, whose attention is never run.
void set_dnn_problem(std::string problem);
/// Why it has no plan for any shape; empty (as at first): it has.
void set_dnn_plan_problem(std::string problem);

}  // namespace concertina::emulation
