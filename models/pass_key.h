// All that decides the kernels of a unit's pass, as words (Backend::repeat).
// Invariant: all that the pass is given, by value, but for the step and sample of its random
// numbers; two different passes never have equal words.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/stage.h"
#include "models/units/unit.h"

namespace concertina {

/// Most words of a pass with so many parameters.
constexpr std::size_t pass_key_words(std::size_t parameters) {
  return 32 + 4 * parameters;
}

/// Replaces `words`. `gradients`: of Pass::weight.
void write_pass_key(const Unit& unit, Pass pass, const UnitIo& io,
                    std::span<const UnitGradient> gradients, std::vector<std::uint64_t>& words);

}  // namespace concertina
