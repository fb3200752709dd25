// How a family's models are stored by Hugging Face's transformers: config.json and tensors by name.
// Pure data: one table per family, read in both directions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model_spec.h"

namespace concertina {

struct ModelConfig;

/// One tensor of ours and where it is in theirs.
struct StoredElsewhere {
  std::string ours;
  std::vector<std::string> theirs;    // side by side along the columns of ours
  bool transposed = false;            // theirs are [out, in]; ours is [in, out]
  bool first_rows = false;            // theirs may have more rows; ours has the first
  bool optional = false;              // of a head, which a model for another task lacks
  std::vector<std::int64_t> shape{};  // of theirs, where it is not ours (transposed)
};

/// A key of config.json (dots between those of objects within it) that is a config key of ours.
/// Where several have the same `ours`, those that are there must have one value.
struct KeyElsewhere {
  std::string_view theirs, ours;
  std::string_view usual{};  // as JSON: what transformers takes where it is not there; empty: none
  bool at_most = false;      // ours may be less
  bool written = true;       // when a config.json is written
};

/// A key of config.json that must have one value, or another of the same meaning.
struct RuleElsewhere {
  std::string_view theirs, value;  // as JSON; the first is the one that is written
  std::string_view or_else{};      // as JSON
  bool may_lack = true;            // not there, or null, means `value`
};

/// A key of config.json that may only be what follows from our config.
struct DerivedElsewhere {
  std::string_view theirs;
  std::int64_t (*value)(const ModelConfig& config) = nullptr;
};

struct HuggingFace {
  std::string_view model_type;  // "llama"
  std::string_view body;        // what precedes names in a model with a head: "model."
  /// A task and the class that does it; the first entry without a task is the body alone.
  std::vector<std::pair<std::string_view, std::string_view>> architectures;
  std::vector<KeyElsewhere> keys;
  std::vector<RuleElsewhere> rules;
  std::vector<std::string_view> unused{};  // keys of config.json that change no figure
  std::vector<std::string_view> left_out;  // endings of tensors that are not read
  /// Tensors that are stored a second time by some versions, and must then be the same.
  std::vector<std::pair<std::string_view, std::string_view>> copies{};
  std::vector<DerivedElsewhere> derived{};
  /// All tensors, named as in a model with a head.
  std::vector<StoredElsewhere> (*tensors)(const ModelConfig& config) = nullptr;
};

/// "001.attention", "002.mlp": the names of the half-blocks of a layer.
std::string attention_unit(std::int64_t layer);
std::string mlp_unit(std::int64_t layer);
std::string head_unit(std::int64_t layers);

/// Adds weight and bias of a map: `name` of ours, one or several of theirs side by side.
void add_dense(std::vector<StoredElsewhere>& all, const std::string& ours,
               const std::vector<std::string>& theirs, bool transposed, bool bias,
               bool optional = false);
/// Adds weight and, of a layer norm, bias.
void add_norm(std::vector<StoredElsewhere>& all, const std::string& ours, const std::string& theirs,
              bool bias, bool optional = false);

}  // namespace concertina
