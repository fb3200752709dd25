// The definitions of "bubble" used in papers, as a table; extend it by adding an entry. All apply
// to the compute of one step (F, I, W and B); only the idle share includes the optimizer step.
// Invariant: pure; with equal stages, each value equals its paper's formula.
#pragma once

#include <span>

#include "parallel/simulate/timeline.h"

namespace concertina {

struct BubbleDefinition {
  const char* name = "";     // a stable key
  const char* formula = "";  // in the paper's symbols, with their meaning here
  const char* source = "";
  double (*value)(const Plan& plan, const Timeline& timeline) = nullptr;
};

/// Every definition, in printing order.
std::span<const BubbleDefinition> bubble_definitions();

}  // namespace concertina
