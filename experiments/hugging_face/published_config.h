// A model's config.json, as Hugging Face's transformers writes it, read as the keys of [model].
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/config/config.h"
#include "models/hugging_face.h"

namespace concertina {

inline constexpr std::uint64_t kMostConfigBytes = std::uint64_t{1} << 24;

/// The description of a published model, read from its folder.
struct PublishedConfig {
  std::string path;    // of config.json
  std::string type;    // of published_models()
  std::string family;  // our name
  std::string task;    // our name; empty: a body without a head
  /// Values by key, with dots between the keys of nested objects; none is null.
  std::map<std::string, nlohmann::json> values;
  std::set<std::string> nulls;  // the keys that are null
  const HuggingFace* table = nullptr;

  /// The number of rows in the position table before that of the first position; `default_value`:
  /// the default for the type.
  std::int64_t rows_before(std::int64_t default_value) const;
};

/// transformers' problem_type values that share the architecture ...ForSequenceClassification.
inline constexpr std::pair<std::string_view, std::string_view> kProblemTypes[] = {
    {"classification", "single_label_classification"},
    {"multi-label", "multi_label_classification"},
    {"regression", "regression"}};

/// The names of classes 0, 1, ...; empty if they are LABEL_0, LABEL_1, ... or not unique.
std::vector<std::string> class_names(const PublishedConfig& published);
/// Whether `config` keeps the classes, or scores, of a model for `task`.
bool keeps_classes(const std::string& task, const RunConfig& config);

/// Input errors: no config.json, an unsupported model, an unsupported value of a key that affects
/// results, an unknown key.
PublishedConfig read_published_config(const std::string& folder);

/// Sets the keys of [model] that `published` determines and that no file or --set has set. Input
/// error: a key is set to a different value.
void adopt_published(const PublishedConfig& published, RunConfig& config);

}  // namespace concertina
