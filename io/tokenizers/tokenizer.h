// Converts text to tokens and back. A tokenizer kind is a file in this folder and an entry in
// io/meson.build. Invariant: the tokens of a text are a pure function of the tokenizer's files,
// which fingerprint() identifies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry.h"

namespace concertina {

/// The tokenizer without files.
inline constexpr std::string_view kBytesTokenizer = "bytes";

/// Tokens that do not represent text.
enum class SpecialToken : std::uint8_t { unknown, begin, end, classify, separate, padding, mask };

/// The input of a model: marks around one text, or around two.
struct Marks {
  struct Part {
    int text = -1;  // the first (0) or second (1) text; -1: the mark `token`
    std::int32_t token = 0;
    std::int32_t type = 0;  // token_type_ids of its tokens
  };
  std::vector<Part> single, pair;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Tokens are in [0, vocabulary()).
  virtual std::int64_t vocabulary() const = 0;
  /// Appends the tokens of `text`, without marks for its beginning or end. Thread-safe. Throws
  /// Error{bad_input} if `text` is not valid UTF-8 and the tokenizer requires characters.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  /// Returns the text of tokens in [0, vocabulary()). It may be invalid UTF-8 if the tokens end
  /// within a character.
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
  virtual std::optional<std::int32_t> special(SpecialToken which) const = 0;
  /// Returns the name of a token in the files: "<unk>", for example, which may encode other text.
  virtual std::string name(std::int32_t token) const = 0;
  /// Returns the marks that the tokenizer's files specify; null if there are none.
  virtual const Marks* marks() const { return nullptr; }
  /// Returns the SHA-256, in hexadecimal, of everything that affects the tokens of a text.
  virtual std::string fingerprint() const = 0;
  /// Returns the first position in [from, text.size()] where `text` can be split without changing
  /// tokens: the two parts give the same tokens as the whole.
  virtual std::size_t cut(std::string_view text, std::size_t from) const = 0;

  std::vector<std::int32_t> tokens(std::string_view text) const {
    std::vector<std::int32_t> all;
    encode(text, all);
    return all;
  }
};

class TokenizerFiles;

struct TokenizerKind {
  /// Returns null if the files are of a different kind. Throws Error{bad_input} for unsupported
  /// content of the files that would change tokens.
  std::unique_ptr<Tokenizer> (*open)(const TokenizerFiles& files) = nullptr;
  std::string_view files;  // human-readable list of its files
};

/// Returns the kinds listed in io/meson.build.
std::span<const Entry<TokenizerKind>> tokenizers();

/// `choice` is "bytes", a file such as tokenizer.json, vocab.txt or tokenizer.model, or a folder
/// with one of these. `where` is the config key for errors.
std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& choice,
                                                const std::string& where);
/// Returns `tokenizer`, or the bytes tokenizer if it is null.
std::shared_ptr<const Tokenizer> or_bytes(std::shared_ptr<const Tokenizer> tokenizer);
/// Whether `choice` is a path: not "bytes", and it contains '/' or '.', or exists.
bool names_tokenizer_files(const std::string& choice);

/// Escapes text for a terminal: \n, \t, \\, and \xHH for everything except printable ASCII.
std::string escape_bytes(std::string_view bytes);

}  // namespace concertina
