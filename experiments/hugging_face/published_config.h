// A model's config.json, as Hugging Face's transformers writes it, and the keys of [model].
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/config/config.h"
#include "models/model.h"

namespace concertina {

/// The description of a published model by its folder.
struct PublishedConfig {
  std::string path;    // of config.json
  std::string family;  // ours
  std::string task;    // ours; empty: a body without a head
  /// Values by key, with dots between those of objects within objects; none is null.
  std::map<std::string, nlohmann::json> values;
  const HuggingFace* table = nullptr;
};

/// Input errors: no config.json, a model that is not supported, a key whose value would change
/// figures and is not supported, a key that nobody here knows.
PublishedConfig read_published_config(const std::string& folder);

/// Keys of [model] that follow from `published` and that no file or --set has set. Input error: a
/// key that is set to something else.
void adopt_published(const PublishedConfig& published, RunConfig& config);
/// Copies the config.json of `folder`, if it has one, into the run, so that an export of it can
/// have the same bytes.
void keep_published_config(const std::string& folder, const RunConfig& config);
/// Where a run has what was copied.
std::string kept_folder(const RunConfig& config);
/// The text that was kept, if it says what `config` and `type` say; else none.
std::optional<std::string> kept_published_config(const RunConfig& config, const std::string& type);

/// The text of a config.json for the model of `config`. Input errors: a family or task that
/// transformers has no model for. `type`: of the weights, such as "float32".
std::string published_config_text(const RunConfig& config, const std::string& type);

/// The table of a family. Input error: it has none.
const HuggingFace& hugging_face_of(const RunConfig& config);

}  // namespace concertina
