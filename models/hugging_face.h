// How Hugging Face's transformers stores a model type: config.json and tensors by name. There is
// one data table per type, which is used in both directions. Several types may map to one family in
// Concertina, each with different options. "Ours" is Concertina, "theirs" transformers.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/model_spec.h"
#include "core/registry.h"

namespace concertina {

struct ModelConfig;

/// One of our tensors and its location in their checkpoint.
struct TensorMapping {
  std::string ours;
  std::vector<std::string> theirs;      // concatenated along our columns
  bool transposed = false;              // their layout is [out, in], ours is [in, out]
  bool first_rows = false;              // their tensor may have extra rows at the end
  bool optional = false;                // belongs to a head, which may be absent
  std::vector<std::int64_t> shape{};    // their shape if it differs from ours (transposed)
  std::int64_t skipped_rows = 0;        // leading rows of their tensor, which no sample reads
  std::vector<std::int64_t> columns{};  // columns from each of `theirs`; empty: equal shares
  /// Number of heads if q, k and v are interleaved by head, [H, 3, D]; 0 if they are separate.
  std::int64_t interleaved_heads = 0;
};

/// One of their values, as JSON, and our equivalent, as config text.
struct SameWord {
  std::string_view theirs, ours;
};

/// One of our keys that must have this value, as config text.
struct FixedKey {
  std::string_view ours, value;
};

/// A key of config.json (dots separate nested keys) that corresponds to one of our config keys. If
/// several entries have the same `ours`, those that are present must agree.
struct KeyMapping {
  enum class Use {
    same,     // a property of the model: values must agree
    at_most,  // our value may be smaller
    advice    // a training default, used if ours is not set; the first one present is used
  };
  enum class Written { always, if_set, never };  // if_set: only if ours is not the default

  std::string theirs;
  std::string_view ours;
  std::string_view
      default_value{};  // as JSON: transformers' default if the key is absent; empty: none
  Use use = Use::same;
  Written written = Written::always;
  std::vector<FixedKey> where{};  // written only if one of these applies; empty: always
  std::vector<SameWord> words{};  // empty: same as theirs; the first match is written
  std::int64_t more = 0;          // their value is larger by this; see positions_after
  /// Returns what 0 means in our config. If this pointer is null, 0 means 0.
  std::int64_t (*zero)(const ModelConfig& config) = nullptr;
  std::string_view null{};  // as JSON: what null means; empty: same as `default_value`
};

/// A key of config.json that must have one value, or an equivalent one. A missing key means
/// `value`, as does null if `value` is false.
struct RuleMapping {
  std::string_view theirs, value;  // as JSON; `value` is the one written
  std::string_view or_else{};      // as JSON
};

/// A key of config.json whose value, as JSON, is determined by our config.
struct DerivedMapping {
  std::string_view theirs;
  std::string (*value)(const ModelConfig& config) = nullptr;
};

/// A key for the dropout before a head; our config has no such key. `default_value` is JSON.
struct HeadDropout {
  std::string_view theirs, default_value{};
};

struct Architecture {
  std::string_view task;  // empty: the body without a head
  std::string name;       // name of transformers' class: "LlamaForCausalLM"
};

struct HuggingFace {
  std::string_view family;  // a name in models()
  std::string body;         // name prefix in a model with a head: "model."
  std::vector<Architecture> architectures{};
  std::vector<KeyMapping> keys{};
  std::vector<FixedKey> fixed{};  // apply to all models of the type
  std::vector<RuleMapping> rules{};
  std::vector<std::string_view> unused{};    // keys of config.json that do not affect results
  std::vector<std::string_view> left_out{};  // suffixes of tensors that are not read
  /// Name suffixes in old files, with their current equivalents.
  std::vector<std::pair<std::string_view, std::string_view>> renamed{};
  /// Tensors that some versions store twice. The copies must be identical.
  std::vector<std::pair<std::string, std::string>> copies{};
  std::vector<DerivedMapping> derived{};
  std::vector<HeadDropout> head_dropouts{};
  /// The config.json key of a token ID. The row of the first position is this ID plus 1, which then
  /// replaces `skipped_rows` and `more`, whose values in the table are for the default ID.
  std::string_view positions_after{};
  /// All tensors, named as in a model with a head.
  std::function<std::vector<TensorMapping>(const ModelConfig& config)> tensors{};
};

/// Returns the types listed in models/meson.build, by their transformers name ("llama").
std::span<const Entry<HuggingFace>> published_models();

/// Returns the names of the half-blocks of a layer: "001.attention", "002.mlp".
std::string attention_unit(std::int64_t layer);
std::string mlp_unit(std::int64_t layer);
std::string head_unit(std::int64_t layers);

/// Adds the weight and bias of a linear map: our tensor `ours` consists of one or more
/// of theirs, concatenated. For `columns`, see TensorMapping.
void add_dense(std::vector<TensorMapping>& all, const std::string& ours,
               const std::vector<std::string>& theirs, bool transposed, bool bias,
               bool optional = false, const std::vector<std::int64_t>& columns = {});
/// Adds the weight of a norm and, for a layer norm, its bias.
void add_norm(std::vector<TensorMapping>& all, const std::string& ours, const std::string& theirs,
              bool bias, bool optional = false);

/// Their names for the parts of a layer: two norms and the maps, all with biases.
struct LayerMapping {
  std::string attention_norm;
  std::vector<std::string> qkv;  // concatenated
  std::string proj, mlp_norm, up, down;
  bool transposed = true;
};
/// Adds all layers. `prefix` is what precedes the layer number: "bert.encoder.layer.".
void add_layers(std::vector<TensorMapping>& all, std::int64_t layers, const std::string& prefix,
                const LayerMapping& names);

/// Adds the token table, which belongs to the model if it is tied, otherwise to the embedding.
void add_token_table(std::vector<TensorMapping>& all, const std::string& theirs);

/// Returns the size keys under the names that most types use, followed by `rest`. `default_context`
/// is JSON. `more` is the number of rows in the position table before the first position.
std::vector<KeyMapping> size_keys(std::string_view default_context,
                                  std::initializer_list<KeyMapping> rest, std::int64_t more = 0);

/// Returns the classes of a decoder: causal LM, classification, token classification if `tags`, and
/// the body. Class names begin with `prefix`, such as "Llama".
std::vector<Architecture> decoders(const std::string& prefix, bool tags = true);

/// Returns the default hidden size of an MLP in most types.
std::int64_t four_widths(const ModelConfig& config);

/// Returns the key of an MLP's activation; activation_of() accepts our value. `default_value` is
/// JSON.
KeyMapping activation_key(std::string theirs, std::string_view ours,
                          std::string_view default_value);

}  // namespace concertina
