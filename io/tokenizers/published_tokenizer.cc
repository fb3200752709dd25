#include "io/tokenizers/published_tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/strict_json.h"
#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/tokenizer_files.h"

namespace concertina {
namespace {

using FileJson = nlohmann::json;

/// A flag of a tokenizer_config.json, which may lack it or not be there.
bool flag_in(const FileTexts& files, const char* key, bool usual, const std::string& where) {
  const auto config = files.find(kTokenizerConfig);
  if (config == files.end()) return usual;
  const FileJson values = parse_strict_object(config->second, where);
  const auto found = values.find(key);
  return found != values.end() && found->is_boolean() ? found->get<bool>() : usual;
}

FileJson added_token(std::int32_t id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

FileJson description_of(FileJson model, FileJson pre_tokenizer, FileJson decoder) {
  return {{"version", "1.0"},          {"truncation", nullptr},
          {"padding", nullptr},        {"added_tokens", FileJson::array()},
          {"normalizer", nullptr},     {"pre_tokenizer", std::move(pre_tokenizer)},
          {"post_processor", nullptr}, {"decoder", std::move(decoder)},
          {"model", std::move(model)}};
}

FileJson byte_pairs_of(FileJson vocab, FileJson merges, bool prefix_space, bool cuts) {
  const FileJson byte_level = {{"type", "ByteLevel"},
                               {"add_prefix_space", prefix_space},
                               {"trim_offsets", true},
                               {"use_regex", cuts}};
  return description_of({{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", nullptr},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", false},
                         {"byte_fallback", false},
                         {"vocab", std::move(vocab)},
                         {"merges", std::move(merges)}},
                        byte_level, byte_level);
}

FileJson of_bytes() {
  FileJson vocab = FileJson::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[printable_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  return byte_pairs_of(std::move(vocab), FileJson::array(), false, false);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    begin = end + 1;
  }
  return lines;
}

/// GPT-2's two files.
FileJson of_pair(const FileTexts& files, const std::string& where) {
  FileJson merges = FileJson::array();
  bool first = true;
  for (std::string& line : lines_of(files.at("merges.txt"))) {
    const bool version = first && line.starts_with("#version");
    first = first && line.empty();
    if (!line.empty() && !version) merges.push_back(std::move(line));
  }
  FileJson file =
      byte_pairs_of(parse_strict_object(files.at("vocab.json"), where), std::move(merges),
                    flag_in(files, "add_prefix_space", false, where), true);
  constexpr const char* kEnd = "<|endoftext|>";
  const FileJson& vocab = file["model"]["vocab"];
  if (const auto end = vocab.find(kEnd); end != vocab.end())
    file["added_tokens"].push_back(added_token(end->get<std::int32_t>(), kEnd));
  return file;
}

/// BERT's own file.
FileJson of_lines(const FileTexts& files, const std::string& where) {
  FileJson vocab = FileJson::object(), added = FileJson::array();
  std::int32_t id = 0;
  for (const std::string& token : lines_of(files.at("vocab.txt"))) {
    for (const char* special : {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"})
      if (token == special) added.push_back(added_token(id, token));
    vocab[token] = id++;
  }
  FileJson file = description_of({{"type", "WordPiece"},
                                  {"unk_token", "[UNK]"},
                                  {"continuing_subword_prefix", "##"},
                                  {"max_input_chars_per_word", 100},
                                  {"vocab", std::move(vocab)}},
                                 {{"type", "BertPreTokenizer"}},
                                 {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}});
  file["added_tokens"] = std::move(added);
  file["normalizer"] = {{"type", "BertNormalizer"},
                        {"clean_text", true},
                        {"handle_chinese_chars", true},
                        {"strip_accents", nullptr},
                        {"lowercase", flag_in(files, "do_lower_case", true, where)}};
  return file;
}

/// One text, or two, between marks.
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
  add(kTokenizerJson, files.description_path());
  add("vocab.json", files.file("vocab.json"));
  if (texts.contains("vocab.json")) add("merges.txt", files.companion("merges.txt"));
  std::string lines = files.file("vocab.txt");
  if (lines.empty() && texts.empty()) lines = files.file_ending(".txt");
  add("vocab.txt", lines);
  if (const std::string model = files.file_ending(".model"); !model.empty())
    add(std::filesystem::path(model).filename(), model);
  for (const char* name : {kTokenizerConfig, "special_tokens_map.json", "added_tokens.json",
                           "chat_template.jinja", "chat_template.json"})
    add(name, files.companion(name));
  return texts;
}

std::optional<std::string> make_description(const FileTexts& files, const std::string& where) {
  FileJson file;
  if (files.empty())
    file = of_bytes();
  else if (files.contains("vocab.json") && files.contains("merges.txt"))
    file = of_pair(files, where);
  else if (files.contains("vocab.txt"))
    file = of_lines(files, where);
  else
    return std::nullopt;
  return file.dump(-1, ' ', false, FileJson::error_handler_t::replace);
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
