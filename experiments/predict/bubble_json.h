// Every published definition of the bubble (parallel/simulate/bubble_definitions.h) of a timeline.
// Invariant: pure.
#pragma once

#include <nlohmann/json.hpp>

#include "parallel/simulate/bubble_definitions.h"

namespace concertina {

/// Each definition by name: {value, formula, source}.
inline nlohmann::ordered_json definitions_json(const Plan& plan, const Timeline& timeline) {
  nlohmann::ordered_json json;
  for (const BubbleDefinition& one : bubble_definitions())
    json[one.name] = {
        {"value", one.value(plan, timeline)}, {"formula", one.formula}, {"source", one.source}};
  return json;
}

}  // namespace concertina
