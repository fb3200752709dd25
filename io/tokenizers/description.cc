// tokenizer.json of Hugging Face's `tokenizers`, or a converted equivalent. The marks of its
// post-processor are added by the dataset; its truncation and padding are ignored.
#include <mutex>
#include <set>

#include "core/log.h"
#include "io/tokenizers/characters/json_rules.h"
#include "io/tokenizers/stages.h"
#include "io/tokenizers/tokenizer_files.h"

namespace concertina::tokenizer_kinds {
namespace {

using DescriptionJson = nlohmann::json;

const DescriptionJson& step_or_null(const DescriptionJson& file, const char* key) {
  static const DescriptionJson kNull;
  const auto found = file.find(key);
  return found == file.end() ? kNull : *found;
}

/// Returns the tokens in the vocabulary of a model of any type; errors in it are detected later.
KnownTokens known_tokens(const DescriptionJson& model, const std::string& where) {
  KnownTokens known;
  const DescriptionJson& vocab = step_or_null(model, "vocab");
  if (vocab.is_object())
    for (auto& [token, id] : read_vocabulary(vocab, where)) known.ids.emplace(token, id);
  known.count = static_cast<std::int64_t>(vocab.size());
  for (std::size_t i = 0; vocab.is_array() && i < vocab.size(); ++i)
    if (vocab[i].is_array() && !vocab[i].empty() && vocab[i][0].is_string())
      known.ids.insert_or_assign(vocab[i][0].get<std::string>(), static_cast<std::int32_t>(i));
  return known;
}

/// Logs once per file, because a launch opens a tokenizer more than once.
void say_what_is_unused(const DescriptionJson& file, const std::string& where) {
  static std::mutex mutex;
  static std::set<std::string> declared;
  const std::lock_guard lock(mutex);
  const bool truncates = !step_or_null(file, "truncation").is_null();
  const bool pads = !step_or_null(file, "padding").is_null();
  if ((truncates || pads) && declared.insert(where).second)
    log::info("{}: ignoring {}, since samples have model.context tokens", where,
              truncates && pads ? "truncation and padding"
              : pads            ? "padding"
                                : "truncation");
}

std::unique_ptr<Tokenizer> open_description(const TokenizerFiles& files) {
  if (files.description() == nullptr || files.model_type().empty()) return nullptr;
  const DescriptionJson& file = *files.description();
  const std::string& where = files.description_path();
  say_what_is_unused(file, where);
  TokenizerStages stages;
  stages.normalizers = read_normalizers(step_or_null(file, "normalizer"), where);
  stages.words = read_pre_tokenizers(step_or_null(file, "pre_tokenizer"), where);
  const DescriptionJson& model = object_of(file, "model", where);
  if (file.contains("added_tokens"))
    stages.added = AddedTokens(
        file["added_tokens"], known_tokens(model, where),
        [&](std::string_view text) { return normalized_by(stages.normalizers, text); }, where);
  stages.model =
      read_word_model(model, files.model_type(),
                      {.bytes = stages.words.bytes, .added = stages.added, .where = where});
  stages.marks = read_marks(step_or_null(file, "post_processor"), where);
  stages.decoders = read_decoders(step_or_null(file, "decoder"), where);
  stages.declared = files.declared();
  stages.fingerprint = files.fingerprint();
  return make_pipeline(std::move(stages));
}

}  // namespace

TokenizerKind description() {
  return {
      .open = open_description,
      .files = "tokenizer.json (BPE, Unigram or WordPiece), vocab.json with merges.txt, vocab.txt"};
}

}  // namespace concertina::tokenizer_kinds
