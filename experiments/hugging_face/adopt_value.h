// Config keys that follow from a model that is stored.
#pragma once

#include <string>

#include "experiments/config/config.h"

namespace concertina {

/// Takes the value of `key` from `theirs`, unless a file or --set has set it. `source`: where it is
/// from. Input error: it is set to something else; with `at_most` a smaller number will do.
void adopt_value(const std::string& key, const RunConfig& theirs, const std::string& source,
                 bool at_most, RunConfig& config);

}  // namespace concertina
