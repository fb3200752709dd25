// Converts other tokenizer files to a tokenizer.json.

#include "io/tokenizers/vocabulary_files.h"
#include "core/error.h"
#include "io/strict_json.h"
#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/published_tokenizer.h"

namespace concertina {
namespace {

using FileJson = nlohmann::json;

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

}  // namespace

FileJson added_token(std::int32_t id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

FileJson description_of_bytes() {
  FileJson vocab = FileJson::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[printable_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  return byte_pairs_of(std::move(vocab), FileJson::array(), false, false);
}

FileJson description_of_pair(const std::string& vocabulary, const std::string& merges,
                             bool prefix_space, const std::string& where) {
  FileJson list = FileJson::array();
  bool first = true;
  for (std::string& line : lines_of(merges)) {
    const bool version = first && line.starts_with("#version");
    first = first && line.empty();
    if (!line.empty() && !version) list.push_back(std::move(line));
  }
  FileJson file =
      byte_pairs_of(parse_strict_object(vocabulary, where), std::move(list), prefix_space, true);
  constexpr const char* kEnd = "<|endoftext|>";
  const FileJson& vocab = file["model"]["vocab"];
  if (const auto end = vocab.find(kEnd); end != vocab.end() && end->is_number_integer())
    file["added_tokens"].push_back(added_token(end->get<std::int32_t>(), kEnd));
  return file;
}

FileJson description_of_lines(const std::string& text, bool lowercase, const std::string& where) {
  FileJson vocab = FileJson::object(), added = FileJson::array();
  std::int32_t id = 0;
  for (const std::string& token : lines_of(text)) {
    const auto other = vocab.find(token);
    if (token.empty() || other != vocab.end())
      throw_input(token.empty() ? std::string("empty line")
                                : fmt::format("duplicate token '{}', also in line {}",
                                              token.substr(0, 60), other->get<int>() + 1),
                  fmt::format("{}:{}", where, id + 1), "list each token once, one per line");
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
                        {"lowercase", lowercase}};
  return file;
}

}  // namespace concertina
