// The config.json of a run's model, as Hugging Face's transformers would write it. It is the one
// the model came with, if that still agrees with the run's config.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "experiments/hugging_face/published_config.h"

namespace concertina {

/// Copies the config.json of `folder`, if it has one, into the run, so that an export can reproduce
/// it byte for byte.
void keep_published_config(const std::string& folder, const RunConfig& config);
/// The folder of the copy in a run.
std::string kept_folder(const RunConfig& config);
/// The copied text if it agrees with `config` and `type`; otherwise nullopt.
std::optional<std::string> kept_published_config(const RunConfig& config, const std::string& type);

/// The name of the model's task, never "auto".
std::string_view task_name(const RunConfig& config);

/// The number of rows in the position table before that of the first position: as in the kept
/// config.json if the model is stored as the same type again, otherwise `default_value`.
std::int64_t rows_before_positions(const RunConfig& config, std::int64_t default_value);

/// The text of a config.json for the model of `config`. Input errors: a family or task for which
/// transformers has no model. `type`: the type of the weights, such as "float32".
std::string published_config_text(const RunConfig& config, const std::string& type);

/// The type under which the model of `config` is stored, and its table: the original type, or the
/// first type that can express the model completely. Input error: no type can.
const Entry<HuggingFace>& hugging_face_of(const RunConfig& config);

}  // namespace concertina
