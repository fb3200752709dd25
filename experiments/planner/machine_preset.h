// Machine files by name: experiments/machines/*.toml, installed with the program.
// Invariant: a preset is a machine file like any other; nothing is compiled in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/costs/machine_model.h"

namespace concertina {

/// "a100-40gb", ...: of the folder that is found first, beside the program (as installed, then as
/// built) or in the source tree. Sorted; empty where there is none.
const std::vector<std::string_view>& machine_presets();

/// The path of a machine file: `name` itself if it ends in ".toml" or has a slash, else the
/// preset's. Throws Error{bad_input} for an unknown preset, with the nearest.
std::string machine_path(const std::string& name);

MachineModel read_machine(const std::string& name);

}  // namespace concertina
