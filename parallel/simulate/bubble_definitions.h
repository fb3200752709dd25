// The definitions of "bubble" that papers use, as one table; add a definition by adding an entry.
// All are of one step's compute (F, I, W and B): the optimizer step is in none of them but the idle
// share of the step.
// Invariant: pure; on equal stages each value is that of its paper's formula.
#pragma once

#include <span>

#include "parallel/simulate/timeline.h"

namespace concertina {

struct BubbleDefinition {
  const char* name = "";     // a stable key
  const char* formula = "";  // in the paper's symbols, with what they mean here
  const char* source = "";
  double (*value)(const Plan& plan, const Timeline& timeline) = nullptr;
};

/// Every definition, in the order in which they are printed.
std::span<const BubbleDefinition> bubble_definitions();

}  // namespace concertina
