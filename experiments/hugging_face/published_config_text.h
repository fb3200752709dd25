// The config.json of a run's model, as Hugging Face's transformers would write it: the one that the
// model came with, where that still says what the run's config does.
#pragma once

#include <optional>
#include <string>

#include "experiments/hugging_face/published_config.h"

namespace concertina {

/// Copies the config.json of `folder`, if it has one, into the run, so that an export of it can
/// have the same bytes.
void keep_published_config(const std::string& folder, const RunConfig& config);
/// Where a run has what was copied.
std::string kept_folder(const RunConfig& config);
/// The text that was kept, if it says what `config` and `type` say; else none.
std::optional<std::string> kept_published_config(const RunConfig& config, const std::string& type);

/// The rows of the table of positions before the first position, which are `usual` of the type: as
/// in the config.json that was kept, if the model is stored as that type again.
std::int64_t rows_before_positions(const RunConfig& config, std::int64_t usual);

/// The text of a config.json for the model of `config`. Input errors: a family or task that
/// transformers has no model for. `type`: of the weights, such as "float32".
std::string published_config_text(const RunConfig& config, const std::string& type);

/// The type as which the model of `config` is stored, and its table: the one that it came as, or
/// the first that can say all of it. Input error: there is none.
const Entry<HuggingFace>& hugging_face_of(const RunConfig& config);

}  // namespace concertina
