// Costs of each stage of a pipeline in a file: the header `F,I,W`, then one row of seconds per
// stage, from the first stage to the last.
// Invariant: pure but for reading the file.
#pragma once

#include <string>
#include <vector>

#include "parallel/simulate/costs.h"

namespace concertina {

/// Whether --costs names such a file: its name ends in .csv.
bool is_stage_costs_file(const std::string& path);

/// The rows of the file. Throws Error{bad_input}, whose place is `path:line`, if it is no such file
/// or a cell is no figure (parallel/predict/machine.h).
std::vector<StageCosts> read_stage_costs(const std::string& path);

}  // namespace concertina
