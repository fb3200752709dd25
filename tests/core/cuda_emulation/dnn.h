// cuDNN for the choice of attention kernels only: present or absent, with or without plans.
#pragma once

#include <string>

namespace concertina::emulation {

/// Sets why there is no cuDNN (the default); empty: cuDNN is present, but its attention never runs.
void set_dnn_problem(std::string problem);
/// Sets why it has no plan for any shape; empty (the default): it has plans.
void set_dnn_plan_problem(std::string problem);

}  // namespace concertina::emulation
