#include "experiments/run/run_identity.h"

#include <fmt/format.h>

#include "core/error.h"
#include "experiments/config/config_keys.h"

namespace concertina {
namespace {

/// Whether a key of the random split has no effect: nothing is drawn, or the key does not apply.
bool is_idle_draw(std::string_view key, const RunConfig& config) {
  const DataSection& data = config.data;
  if (key != "data.split" && key != "data.split_seed") return false;
  const bool draws = (data.validation_files.empty() && data.validation > 0) || data.test > 0;
  return !draws || !applies(*find_key("data.split"), config) ||
         (key == "data.split_seed" && option<std::string>(data.options, "split") == "end");
}

}  // namespace

void require_version(const nlohmann::json& stored, const nlohmann::json& now,
                     const std::string& path) {
  constexpr const char* kSince = "model.init_std";  // in every identity since 0.2.0
  if (now.contains(kSince) && !stored.contains(kSince))
    throw_input("the checkpoint was written by a version of concertina before 0.2.0", path,
                "the version that wrote it; model.from can read its weights");
}

nlohmann::json value_then(const nlohmann::json& stored, const std::string& key) {
  if (stored.contains(key)) return stored[key];
  const Key* known = find_key(key);
  return known != nullptr ? nlohmann::json(value_text(*known, default_config()))
                          : nlohmann::json("absent");
}

bool may_change(std::string_view key) {
  return role_of(key) == KeyRole::changeable || key == "numerics.isa" || key == "oneDNN";
}

nlohmann::json numerics_identity(const RunConfig& config, const std::string& data_fingerprint) {
  nlohmann::json identity;
  const bool freezes = config.freeze.units > 0 || config.freeze.policy != "none";
  for (const Key& key : config_keys()) {
    const bool numeric = key.role == KeyRole::numbers || key.role == KeyRole::changeable;
    const bool idle = (!freezes && (key.name == "freeze.tied" || key.name == "freeze.after")) ||
                      is_idle_draw(key.name, config);
    if (numeric && !idle) identity[std::string(key.name)] = value_text(key, config);
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
  require_version(stored, now, path);
  const bool repaired = stored.contains(kProgress) && stored[kProgress].contains(kUnread);
  const auto check = [&](const std::string& key, const nlohmann::json& value) {
    if (may_change(key) || (repaired && (key == kWholeText || key == "data.text"))) return;
    const nlohmann::json then = value_then(stored, key);
    if (then == value) return;
    if (key == "data.text" && text(then).empty())
      throw_input("the checkpoint is an imported model, not one from a run with data", path,
                  "a run with another run.name that starts from it with model.from");
    throw_input(fmt::format("the checkpoint is from another run: {} was {}, now it is {}", key,
                            text(then), text(value)),
                path, fmt::format("the same {} as before, or another run.name for a new run", key));
  };
  // Checks stored keys first: a key that enables others explains more than the keys it enables.
  for (const bool stated : {true, false})
    for (const auto& [key, value] : now.items())
      if (stored.contains(key) == stated) check(key, value);
  for (const auto& [key, value] : stored.items())
    if (!now.contains(key) && !may_change(key) && key != kProgress)
      throw_input(fmt::format("the checkpoint depends on {} = {}, which is unknown to this version",
                              key, text(value)),
                  path, "the version of concertina that wrote it, or a newer one");
}

}  // namespace concertina
