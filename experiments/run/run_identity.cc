#include "experiments/run/run_identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "experiments/config/config_keys.h"

namespace concertina {
namespace {

/// Checkpoints are fp32 in any precision and on any device.
constexpr std::string_view kMayChange[] = {
    "numerics.compute", "numerics.attention", "run.device", "numerics.isa", "oneDNN", "lr.steps"};

/// The keys of [data] that say how a set may be, not how it is.
bool only_checks(std::string_view key) {
  return key == "data.most_overlap" || key == "data.missing_classes";
}

/// Whether a key of the draw has no effect: nothing is drawn, or as it does not say.
bool is_idle_draw(std::string_view key, const RunConfig& config) {
  const DataSection& data = config.data;
  if (key != "data.split" && key != "data.split_seed") return false;
  const bool draws = (data.validation_files.empty() && data.validation > 0) || data.test > 0;
  return !draws || !applies(*find_key("data.split"), config) ||
         (key == "data.split_seed" && data.split == "end");
}

}  // namespace

nlohmann::json value_then(const nlohmann::json& stored, const std::string& key) {
  if (stored.contains(key)) return stored[key];
  if (key == "model.seed" || key == "data.seed")
    return stored.value("run.seed", nlohmann::json("absent"));
  if (key == "data.split")  // what was done is not the default of now
    return stored.value("data.text", "").empty() ? nlohmann::json() : "\"end\"";
  if (key == "freeze.tied" || key == "freeze.after") {  // likewise
    const bool froze = stored.value("freeze.units", "0") != "0" ||
                       stored.value("freeze.policy", "\"none\"") != "\"none\"";
    if (!froze) return {};
    return key == "freeze.tied" ? "\"freezes\"" : "0";
  }
  const Key* known = find_key(key);
  return known != nullptr ? nlohmann::json(value_text(*known, RunConfig{}))
                          : nlohmann::json("absent");
}

bool may_change(std::string_view key) {
  return std::find(std::begin(kMayChange), std::end(kMayChange), key) != std::end(kMayChange);
}

nlohmann::json numerics_identity(const RunConfig& config, const std::string& data_fingerprint) {
  nlohmann::json identity;
  RunConfig copy = config;
  const bool freezes = config.freeze.units > 0 || config.freeze.policy != "none";
  for (const Key& key : config_keys()) {
    const std::string_view section = key.section();
    const bool numeric =
        (section == "model" && key.name != "model.from" && key.name != "model.head") ||
        section == "batch" || section == "optimizer" || section == "freeze" || section == "lr" ||
        key.name == "run.seed" || key.name == "elastic.batch" ||
        (section == "data" && !names_data(key.name) && !only_checks(key.name)) ||
        key.name == "numerics.compute" || key.name == "numerics.attention" ||
        key.name == "run.device";
    const bool idle = (!freezes && (key.name == "freeze.tied" || key.name == "freeze.after")) ||
                      is_idle_draw(key.name, config);
    if (numeric && !idle) identity[std::string(key.name)] = value_text(key, copy);
  }
  identity["model.seed"] = std::to_string(model_seed(config));
  identity["data.seed"] = std::to_string(data_seed(config));
  if (freezes) identity["freeze.after"] = std::to_string(freeze_after(config));
  identity["lr.steps"] = std::to_string(lr_steps(config));
  identity["numerics.leaves"] = std::to_string(reduction_leaves(config));
  identity["data.text"] = data_fingerprint;
  return identity;
}

void check_identity(const nlohmann::json& stored, const nlohmann::json& now,
                    const std::string& path) {
  const auto text = [](const nlohmann::json& one) {
    return one.is_string() ? one.get<std::string>() : one.dump();
  };
  const bool repaired = stored.contains(kProgress) && stored[kProgress].contains(kUnread);
  for (const auto& [key, value] : now.items()) {
    if (repaired && (key == kWholeText || key == "data.text")) continue;
    // A sample of the text is compared in any case.
    if (key == kWholeText && !stored.contains(key)) continue;
    const nlohmann::json then = value_then(stored, key);
    if (may_change(key) || then == value || then.is_null()) continue;
    if (key == "data.text" && text(then).empty())
      throw_input("the checkpoint is of a model that was imported, not of a run with data", path,
                  "a run of another run.name that starts from it, by model.from");
    throw_input(fmt::format("the checkpoint is of another run: {} was {}, now it is {}", key,
                            text(then), text(value)),
                path, fmt::format("the same {} as before, or another run.name for a new run", key));
  }
  for (const auto& [key, value] : stored.items())
    if (!now.contains(key) && !may_change(key) && key != kProgress)
      throw_input(fmt::format("the checkpoint depends on {} = {}, which this version does not know",
                              key, text(value)),
                  path, "the version of concertina that wrote it, or a newer one");
}

}  // namespace concertina
