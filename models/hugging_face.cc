#include "models/hugging_face.h"

#include <fmt/format.h>

#include <array>

#include "published_model_table.h"

namespace concertina {

namespace published {
#define CONCERTINA_DECLARE(name, symbol) HuggingFace symbol();
CONCERTINA_PUBLISHED_MODELS(CONCERTINA_DECLARE)
#undef CONCERTINA_DECLARE
}  // namespace published

std::span<const Entry<HuggingFace>> published_models() {
#define CONCERTINA_ENTRY(name, symbol) Entry<HuggingFace>{name, published::symbol()},
  static const std::array kTypes{CONCERTINA_PUBLISHED_MODELS(CONCERTINA_ENTRY)};
#undef CONCERTINA_ENTRY
  return kTypes;
}

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

void add_dense(std::vector<StoredElsewhere>& all, const std::string& ours,
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

void add_norm(std::vector<StoredElsewhere>& all, const std::string& ours, const std::string& theirs,
              bool bias, bool optional) {
  add_dense(all, ours, {theirs}, false, bias, optional);
}

std::vector<SameWord> activation_words() {
  return {{"\"gelu\"", "gelu"},           {"\"gelu_python\"", "gelu"},
          {"\"gelu_new\"", "gelu_tanh"},  {"\"gelu_pytorch_tanh\"", "gelu_tanh"},
          {"\"gelu_fast\"", "gelu_tanh"}, {"\"relu\"", "relu"},
          {"\"silu\"", "silu"},           {"\"swish\"", "silu"}};
}

}  // namespace concertina
