// The part of a study that its command line adds, as text for the study's file.
#pragma once

#include <string>
#include <vector>

namespace concertina {

/// Returns the values of KEY=VALUE in Hydra's syntax for sweeps: `1,2`, `choice(1,2)` and
/// `range(START,STOP,STEP)` have several. Commas in quotes or brackets belong to a value. Throws
/// Error{bad_input} for Hydra's other functions.
std::vector<std::string> sweep_values(const std::string& key, const std::string& text);

/// Returns [override] with the keys of `sets` that have one value, sorted, and [sweep] with those
/// that have several, in sequence.
std::string overrides_text(const std::vector<std::string>& sets);

}  // namespace concertina
