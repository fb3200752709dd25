// The "machine file": a MachineModel in TOML, written by `bench links` or by hand; costs.json
// contains one in JSON. Presets are in experiments/machines/ and are installed with the program.
// Invariant: read(write(machine)) == machine; no machine is compiled in.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/predict/machine.h"

namespace concertina {

/// Errors name `source`.
MachineModel machine_from_json(const nlohmann::json& json, const std::string& source);
nlohmann::ordered_json to_json(const MachineModel& machine);

MachineModel read_machine_file(const std::string& path);
std::string machine_toml(const MachineModel& machine);

/// The names of the presets ("a100-40gb"), sorted: those in the first folder found next to the
/// program (as installed, then as built) or in the source tree; empty if there is none.
const std::vector<std::string_view>& machine_presets();

/// The path of a machine file: `name` itself if it ends in ".toml" or contains a slash, otherwise
/// the preset's path. Throws Error{bad_input} for an unknown preset and suggests the closest one.
std::string machine_path(const std::string& name);

MachineModel read_machine(const std::string& name);

}  // namespace concertina
