#include "io/tokenizers/sentencepiece_library.h"

#include <sentencepiece_processor.h>

#include "core/error.h"
#include "io/sha256.h"
#include "io/tokenizers/tokenizer_files.h"
#include "io/tokenizers/unicode.h"

namespace concertina {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& path) {
    const std::string model = read_tokenizer_file(path);
    const auto status = processor_.LoadFromSerializedProto(model);
    if (!status.ok())
      throw_input(fmt::format("this is no SentencePiece model: {}", status.ToString()), path,
                  "the file that was trained, whole");
    fingerprint_ = sha256_hex(model);
  }

  std::int64_t vocabulary() const override { return processor_.GetPieceSize(); }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    require_utf8(text);
    std::vector<int> ids;
    const auto status = processor_.Encode({text.data(), text.size()}, &ids);
    CONCERTINA_CHECK(status.ok(), "{}", status.ToString());
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    const auto status = processor_.Decode(std::vector<int>(tokens.begin(), tokens.end()), &text);
    CONCERTINA_CHECK(status.ok(), "{}", status.ToString());
    return text;
  }
  std::optional<std::int32_t> special(SpecialToken which) const override {
    const int id = which == SpecialToken::unknown   ? processor_.unk_id()
                   : which == SpecialToken::begin   ? processor_.bos_id()
                   : which == SpecialToken::end     ? processor_.eos_id()
                   : which == SpecialToken::padding ? processor_.pad_id()
                                                    : -1;
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
  }
  std::string fingerprint() const override { return fingerprint_; }
  /// Its normalization looks across any character, and the best segmentation is that of the whole.
  std::size_t cut(std::string_view text, std::size_t /*from*/) const override {
    return text.size();
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
  std::string fingerprint_;
};

}  // namespace

bool has_sentencepiece() {
  return true;
}

std::unique_ptr<Tokenizer> open_sentencepiece_model(const std::string& path) {
  return std::make_unique<SentencePieceTokenizer>(path);
}

}  // namespace concertina
