// The reference Backend of the tests: the formulas of tests/oracle/ over views of fp32 or bf16.
// Invariant: one thread, no workspace, sums in double.
#pragma once

#include <memory>

#include "core/backend.h"

namespace concertina {

std::unique_ptr<Backend> make_oracle_backend();

}  // namespace concertina
