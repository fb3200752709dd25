#include "models/hugging_face.h"

#include <fmt/format.h>

#include "models/model.h"
#include "published_model_table.h"

namespace concertina {

CONCERTINA_REGISTRY_IN(CONCERTINA_PUBLISHED_MODELS, HuggingFace, published, published_models)

std::string attention_unit(std::int64_t layer) {
  return fmt::format("{:03}.attention", 1 + 2 * layer);
}
std::string mlp_unit(std::int64_t layer) {
  return fmt::format("{:03}.mlp", 2 + 2 * layer);
}
std::string head_unit(std::int64_t layers) {
  return fmt::format("{:03}.head", 1 + 2 * layers);
}

namespace {

std::vector<std::string> with_ending(const std::vector<std::string>& names,
                                     std::string_view ending) {
  std::vector<std::string> result;
  for (const std::string& name : names) result.push_back(fmt::format("{}.{}", name, ending));
  return result;
}

}  // namespace

void add_dense(std::vector<TensorMapping>& all, const std::string& ours,
               const std::vector<std::string>& theirs, bool transposed, bool bias, bool optional,
               const std::vector<std::int64_t>& columns) {
  all.push_back({.ours = ours + ".weight",
                 .theirs = with_ending(theirs, "weight"),
                 .transposed = transposed,
                 .optional = optional,
                 .columns = columns});
  if (bias)
    all.push_back({.ours = ours + ".bias",
                   .theirs = with_ending(theirs, "bias"),
                   .optional = optional,
                   .columns = columns});
}

void add_norm(std::vector<TensorMapping>& all, const std::string& ours, const std::string& theirs,
              bool bias, bool optional) {
  add_dense(all, ours, {theirs}, false, bias, optional);
}

void add_layers(std::vector<TensorMapping>& all, std::int64_t layers, const std::string& prefix,
                const LayerMapping& names) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string attention = attention_unit(layer) + "/", mlp = mlp_unit(layer) + "/";
    const std::string theirs = fmt::format("{}{}.", prefix, layer);
    std::vector<std::string> qkv;
    for (const std::string& name : names.qkv) qkv.push_back(theirs + name);
    add_norm(all, attention + "ln", theirs + names.attention_norm, true);
    add_dense(all, attention + "qkv", qkv, names.transposed, true);
    add_dense(all, attention + "proj", {theirs + names.proj}, names.transposed, true);
    add_norm(all, mlp + "ln", theirs + names.mlp_norm, true);
    add_dense(all, mlp + "up", {theirs + names.up}, names.transposed, true);
    add_dense(all, mlp + "down", {theirs + names.down}, names.transposed, true);
  }
}

void add_token_table(std::vector<TensorMapping>& all, const std::string& theirs) {
  for (const char* ours : {"wte", "000.embedding/wte"})
    all.push_back({.ours = ours, .theirs = {theirs}, .optional = true});
}

std::vector<KeyMapping> size_keys(std::string_view default_context,
                                  std::initializer_list<KeyMapping> rest, std::int64_t more) {
  std::vector<KeyMapping> keys{{"num_hidden_layers", "model.layers"},
                               {"hidden_size", "model.width"},
                               {"num_attention_heads", "model.heads"},
                               {.theirs = "max_position_embeddings",
                                .ours = "model.context",
                                .default_value = default_context,
                                .use = KeyMapping::Use::at_most,
                                .more = more},
                               {"vocab_size", "model.vocab"},
                               {"num_labels", "model.classes"}};
  keys.insert(keys.end(), rest);
  return keys;
}

std::vector<Architecture> decoders(const std::string& prefix, bool tags) {
  std::vector<Architecture> all{{"causal-lm", prefix + "ForCausalLM"},
                                {"classification", prefix + "ForSequenceClassification"},
                                {"", prefix + "Model"}};
  if (tags) all.push_back({"token-classification", prefix + "ForTokenClassification"});
  return all;
}

std::int64_t four_widths(const ModelConfig& config) {
  return 4 * config.width;
}

KeyMapping activation_key(std::string theirs, std::string_view ours,
                          std::string_view default_value) {
  return {.theirs = std::move(theirs),
          .ours = ours,
          .default_value = default_value,
          .words = {{"\"gelu\"", "gelu"},
                    {"\"gelu_python\"", "gelu"},
                    {"\"gelu_new\"", "gelu_tanh"},
                    {"\"gelu_pytorch_tanh\"", "gelu_tanh"},
                    {"\"gelu_fast\"", "gelu_tanh"},
                    {"\"relu\"", "relu"},
                    {"\"silu\"", "silu"},
                    {"\"swish\"", "silu"}}};
}

}  // namespace concertina
