#include "experiments/planner/machine_preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/nearest.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// The folder with the presets; empty: none.
fs::path preset_folder() {
  std::error_code ignored;
  const fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder :
       {bin / "../share/concertina/machines", bin / "../../experiments/machines",
        bin / "../../../experiments/machines", fs::path(CONCERTINA_MACHINES)})
    if (fs::is_directory(folder, ignored)) return folder;
  return {};
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(preset_folder(), ignored))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

const std::vector<std::string_view>& machine_presets() {
  static const std::vector<std::string> names = preset_names();
  static const std::vector<std::string_view> views(names.begin(), names.end());
  return views;
}

std::string machine_path(const std::string& name) {
  if (name.ends_with(".toml") || name.find('/') != std::string::npos) return name;
  const auto& presets = machine_presets();
  if (std::find(presets.begin(), presets.end(), name) == presets.end())
    throw_input(fmt::format("unknown machine '{}'", name), "--machine",
                presets.empty() ? "a machine file, FILE.toml"
                                : one_of(nearest_word(name, presets), presets) +
                                      ", or a machine file, FILE.toml");
  return preset_folder() / (name + ".toml");
}

MachineModel read_machine(const std::string& name) {
  return read_machine_file(machine_path(name));
}

}  // namespace concertina
