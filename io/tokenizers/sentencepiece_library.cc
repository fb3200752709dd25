#include "io/tokenizers/sentencepiece_library.h"

#include <sentencepiece_processor.h>

#include <exception>

#include "core/error.h"
#include "io/sha256.h"
#include "io/tokenizers/characters/unicode.h"
#include "io/tokenizers/tokenizer_files.h"

namespace concertina {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& path, const DeclaredTokens& declared) {
    const std::string model = read_tokenizer_file(path);
    if (const std::string wrong = load(model); !wrong.empty())
      throw_input(fmt::format("not a valid SentencePiece model: {}", wrong), path,
                  "use the complete file from a trained model");
    fingerprint_ = sha256_hex(model);
    specials_ = ids_of(declared, *this);
  }

  std::int64_t vocabulary() const override { return model_.GetPieceSize(); }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    require_utf8(text);
    std::vector<int> ids;
    const auto status = model_.Encode(text, &ids);
    CONCERTINA_CHECK(status.ok(), "{}", status.ToString());
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    const std::vector<int> ids(tokens.begin(), tokens.end());
    const auto status = model_.Decode(ids, &text);
    CONCERTINA_CHECK(status.ok(), "{}", status.ToString());
    return text;
  }
  std::string name(std::int32_t token) const override { return model_.IdToPiece(token); }
  std::optional<std::int32_t> special(SpecialToken which) const override {
    if (const auto found = specials_.find(which); found != specials_.end()) return found->second;
    const int id = which == SpecialToken::unknown   ? model_.unk_id()
                   : which == SpecialToken::begin   ? model_.bos_id()
                   : which == SpecialToken::end     ? model_.eos_id()
                   : which == SpecialToken::padding ? model_.pad_id()
                                                    : -1;
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
  }
  std::string fingerprint() const override { return fingerprint_; }
  /// Normalization and segmentation depend on the whole text.
  std::size_t cut(std::string_view text, std::size_t /*from*/) const override {
    return text.size();
  }

 private:
  /// Returns the error, or an empty string. The library throws exceptions for some damaged files.
  std::string load(const std::string& model) {
    try {
      const auto status = model_.LoadFromSerializedProto(model);
      return status.ok() ? "" : status.ToString();
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  sentencepiece::SentencePieceProcessor model_;
  std::string fingerprint_;
  std::map<SpecialToken, std::optional<std::int32_t>> specials_;  // specified by files
};

}  // namespace

bool has_sentencepiece() {
  return true;
}

std::unique_ptr<Tokenizer> open_sentencepiece_model(const std::string& path,
                                                    const DeclaredTokens& declared) {
  return std::make_unique<SentencePieceTokenizer>(path, declared);
}

}  // namespace concertina
