// The "machine file": a MachineModel in TOML, as `bench links` writes it and people write it by
// hand; costs.json holds one in JSON. Presets lie in experiments/machines/ and are installed with
// the program. Invariant: read(write(machine)) == machine; nothing is compiled in.
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

/// "a100-40gb", ...: of the folder that is found first, beside the program (as installed, then as
/// built) or in the source tree. Sorted; empty where there is none.
const std::vector<std::string_view>& machine_presets();

/// The path of a machine file: `name` itself if it ends in ".toml" or has a slash, else the
/// preset's. Throws Error{bad_input} for an unknown preset, with the nearest.
std::string machine_path(const std::string& name);

MachineModel read_machine(const std::string& name);

}  // namespace concertina
