#include "io/tokenizers/published_tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/strict_json.h"
#include "io/tokenizers/tokenizer_files.h"
#include "io/tokenizers/vocabulary_files.h"

namespace concertina {
namespace {

using FileJson = nlohmann::json;

/// Returns the marks around one or two texts as a template of tokenizer.json.
FileJson template_of(const std::vector<Marks::Part>& parts,
                     const std::map<std::int32_t, std::string>& names) {
  FileJson items = FileJson::array();
  for (const Marks::Part& part : parts) {
    const char* kind = part.text < 0 ? "SpecialToken" : "Sequence";
    const std::string id = part.text < 0 ? names.at(part.token) : part.text == 0 ? "A" : "B";
    items.push_back({{kind, {{"id", id}, {"type_id", part.type}}}});
  }
  return items;
}

FileJson post_processor_of(const Marks& around, const std::map<std::int32_t, std::string>& names) {
  FileJson tokens = FileJson::object();
  for (const Marks::Part& part : around.pair)
    if (part.text < 0) {
      const std::string& name = names.at(part.token);
      tokens[name] = {{"id", name}, {"ids", {part.token}}, {"tokens", {name}}};
    }
  return {{"type", "TemplateProcessing"},
          {"single", template_of(around.single, names)},
          {"pair", template_of(around.pair, names)},
          {"special_tokens", std::move(tokens)}};
}

}  // namespace

FileTexts tokenizer_files(const std::string& choice, const std::string& where) {
  FileTexts texts;
  if (choice == kBytesTokenizer) return texts;
  const TokenizerFiles files(choice, where);
  const auto add = [&](const std::string& name, const std::string& path) {
    if (!path.empty()) texts[name] = read_tokenizer_file(path);
  };
  add(kTokenizerJson, files.published());
  add("vocab.json", files.file("vocab.json"));
  if (texts.contains("vocab.json")) add("merges.txt", files.companion("merges.txt"));
  add("vocab.txt", texts.empty() ? files.lines() : files.file("vocab.txt"));
  // transformers expects "tokenizer.model", not "tokenizer.model.v3".
  if (const std::string model = files.sentencepiece(); !model.empty()) {
    const std::string name = std::filesystem::path(model).filename();
    add(name.substr(0, name.rfind(".model") + 6), model);
  }
  for (const char* name : {kTokenizerConfig, kSpecialTokensMap, "added_tokens.json",
                           "generation_config.json", "chat_template.jinja", "chat_template.json"})
    add(name, files.companion(name));
  return texts;
}

std::optional<std::string> make_description(const std::string& choice, const std::string& where) {
  const auto text = [](const FileJson& file) {
    return file.dump(-1, ' ', false, FileJson::error_handler_t::replace);
  };
  if (choice == kBytesTokenizer) return text(description_of_bytes());
  const TokenizerFiles files(choice, where);
  if (files.description() == nullptr || files.is_as_published()) return std::nullopt;
  return text(*files.description());
}

std::string with_marks(const std::string& description,
                       const std::map<std::int32_t, std::string>& names, std::int64_t vocabulary,
                       const Marks* around, const std::string& where) {
  FileJson file = parse_strict_object(description, where);
  for (const auto& [id, name] : names)
    if (id >= vocabulary) file["added_tokens"].push_back(added_token(id, name));
  if (around == nullptr) return file.dump();
  FileJson& step = file["post_processor"];
  FileJson marks = post_processor_of(*around, names);
  step = step.is_null() ? std::move(marks)
                        : FileJson{{"type", "Sequence"}, {"processors", {step, std::move(marks)}}};
  return file.dump();
}

}  // namespace concertina
