// How Hugging Face's transformers stores a type of models: config.json and tensors by name. Pure
// data: one table per type, read in both directions. Several types may be one family here, each
// with some of its options.
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

/// One tensor of ours and where it is in theirs.
struct StoredElsewhere {
  std::string ours;
  std::vector<std::string> theirs;      // side by side along the columns of ours
  bool transposed = false;              // theirs are [out, in]; ours is [in, out]
  bool first_rows = false;              // theirs may have more rows at the end than ours
  bool optional = false;                // of a head, which a model for another task lacks
  std::vector<std::int64_t> shape{};    // of theirs, where it is not ours (transposed)
  std::int64_t skipped_rows = 0;        // the first of theirs, which no sample reads
  std::vector<std::int64_t> columns{};  // of ours, each of theirs; empty: equal shares
  /// Theirs has q, k and v head by head, [H, 3, D], where ours has all of q, then k, then v.
  std::int64_t interleaved_heads = 0;
};

/// A word of theirs, as JSON, and ours for the same, as config text.
struct SameWord {
  std::string_view theirs, ours;
};

/// A key of ours that has one value, as config text.
struct FixedKey {
  std::string_view ours, value;
};

/// A key of config.json (dots between those of objects within it) that is a config key of ours.
/// Where several have the same `ours`, those that are there must have one value.
struct KeyElsewhere {
  enum class Use {
    same,     // of the model: ours must be the same
    at_most,  // ours may be less
    advice    // of training: taken where ours is not set; the first that is there counts
  };
  enum class Written { always, if_set, never };  // if_set: where ours is not its default

  std::string theirs;
  std::string_view ours;
  std::string_view usual{};  // as JSON: what transformers takes where it is not there; empty: none
  Use use = Use::same;
  Written written = Written::always;
  std::vector<FixedKey> where{};  // written only where one of these holds; empty: anywhere
  std::vector<SameWord> words{};  // empty: theirs is as ours; the first of several is written
  std::int64_t more = 0;          // theirs is so much more than ours; see positions_after
  /// What 0 of ours stands for; null: for itself.
  std::int64_t (*zero)(const ModelConfig& config) = nullptr;
  std::string_view null{};  // as JSON: what null stands for; empty: `usual`
};

/// A key of config.json that must have one value, or another of the same meaning. A missing key
/// means `value`, and null does where `value` is false.
struct RuleElsewhere {
  std::string_view theirs, value;  // as JSON; the first is the one that is written
  std::string_view or_else{};      // as JSON
};

/// A key of config.json that may only be what follows from our config, as JSON.
struct DerivedElsewhere {
  std::string_view theirs;
  std::string (*value)(const ModelConfig& config) = nullptr;
};

/// A key of the dropout before a head, which has no key of its own here. `usual`: as JSON.
struct HeadDropout {
  std::string_view theirs, usual{};
};

struct Architecture {
  std::string_view task;  // empty: a body alone
  std::string name;       // of transformers' class: "LlamaForCausalLM"
};

struct HuggingFace {
  std::string_view family;  // of models()
  std::string body;         // what precedes names in a model with a head: "model."
  std::vector<Architecture> architectures{};
  std::vector<KeyElsewhere> keys{};
  std::vector<FixedKey> fixed{};  // in all models of the type
  std::vector<RuleElsewhere> rules{};
  std::vector<std::string_view> unused{};    // keys of config.json that change no figure
  std::vector<std::string_view> left_out{};  // endings of tensors that are not read
  /// Endings of names that old files have, and what they are today.
  std::vector<std::pair<std::string_view, std::string_view>> renamed{};
  /// Tensors that are stored a second time by some versions, and must then be the same.
  std::vector<std::pair<std::string, std::string>> copies{};
  std::vector<DerivedElsewhere> derived{};
  std::vector<HeadDropout> head_dropouts{};
  /// The key of a token: the first position's row comes after that of its number, in place of the
  /// `skipped_rows` and the `more` of the table, which are those of the usual token.
  std::string_view positions_after{};
  /// All tensors, named as in a model with a head.
  std::function<std::vector<StoredElsewhere>(const ModelConfig& config)> tensors{};
};

/// The types that models/meson.build lists, by transformers' name for them ("llama").
std::span<const Entry<HuggingFace>> published_models();

/// "001.attention", "002.mlp": the names of the half-blocks of a layer.
std::string attention_unit(std::int64_t layer);
std::string mlp_unit(std::int64_t layer);
std::string head_unit(std::int64_t layers);

/// Adds weight and bias of a map: `name` of ours, one or several of theirs side by side.
/// `columns`: see StoredElsewhere.
void add_dense(std::vector<StoredElsewhere>& all, const std::string& ours,
               const std::vector<std::string>& theirs, bool transposed, bool bias,
               bool optional = false, const std::vector<std::int64_t>& columns = {});
/// Adds weight and, of a layer norm, bias.
void add_norm(std::vector<StoredElsewhere>& all, const std::string& ours, const std::string& theirs,
              bool bias, bool optional = false);

/// Their names for what each layer has: two norms with biases, and maps with biases.
struct LayerElsewhere {
  std::string attention_norm;
  std::vector<std::string> qkv;  // side by side
  std::string proj, mlp_norm, up, down;
  bool transposed = true;
};
/// Adds all layers. `prefix`: of layer 0's names, without the number: "bert.encoder.layer.".
void add_layers(std::vector<StoredElsewhere>& all, std::int64_t layers, const std::string& prefix,
                const LayerElsewhere& names);

/// Adds the token table, which is the whole model's where it is tied, else the embedding's.
void add_token_table(std::vector<StoredElsewhere>& all, const std::string& theirs);

/// The sizes by the names that most types give them, then `rest`. `usual_context`: as JSON.
/// `more`: rows of the table of positions before the first position.
std::vector<KeyElsewhere> size_keys(std::string_view usual_context,
                                    std::initializer_list<KeyElsewhere> rest,
                                    std::int64_t more = 0);

/// A decoder's classes: for the next token, for classes, for `tags` of tokens, and the body.
/// `prefix`: "Llama".
std::vector<Architecture> decoders(const std::string& prefix, bool tags = true);

/// What most types take for the columns within an MLP.
std::int64_t four_widths(const ModelConfig& config);

/// The key of an MLP's activation, whose value ours is by activation_of(). `usual`: as JSON.
KeyElsewhere activation_key(std::string theirs, std::string_view ours, std::string_view usual);

}  // namespace concertina
