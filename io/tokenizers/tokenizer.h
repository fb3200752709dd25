// Text into tokens and back. A kind of tokenizer is one file here and one word in io/meson.build.
// Invariant: what a tokenizer makes of a text is a pure function of its files; fingerprint() is
// theirs.
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

/// The tokenizer that needs no files.
inline constexpr std::string_view kBytesTokenizer = "bytes";

/// Tokens that stand for no text.
enum class SpecialToken : std::uint8_t { unknown, begin, end, classify, separate, padding, mask };

/// What a model reads where a tokenizer has put its marks around one text, or around two.
struct Marks {
  struct Part {
    int text = -1;  // the first (0) or second; -1: the mark `token`
    std::int32_t token = 0;
    std::int32_t type = 0;  // of its tokens (token_type_ids)
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
  /// Appends the tokens of `text`; none stands for its beginning or end. For several threads at
  /// once. Input error: `text` is not valid UTF-8 and the tokenizer reads characters.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  /// The text of tokens, each in [0, vocabulary()). Its bytes need not be valid UTF-8 where the
  /// tokens do not end with a character.
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
  virtual std::optional<std::int32_t> special(SpecialToken which) const = 0;
  /// What the files call a token, in [0, vocabulary()): "<unk>", which may stand for another text.
  virtual std::string name(std::int32_t token) const = 0;
  /// The marks that the tokenizer's files put around texts; null if they put none.
  virtual const Marks* marks() const { return nullptr; }
  /// SHA-256, in hexadecimal digits, of all that decides what tokens a text has.
  virtual std::string fingerprint() const = 0;
  /// The first place in [from, text.size()] where cutting `text` changes no token: the tokens of
  /// both parts, one after the other, are those of the whole.
  virtual std::size_t cut(std::string_view text, std::size_t from) const = 0;

  std::vector<std::int32_t> tokens(std::string_view text) const {
    std::vector<std::int32_t> all;
    encode(text, all);
    return all;
  }
};

class TokenizerFiles;

struct TokenizerKind {
  /// Null where the files are another kind's. Input errors: all that they have and that would
  /// change tokens, but is not supported.
  std::unique_ptr<Tokenizer> (*open)(const TokenizerFiles& files) = nullptr;
  std::string_view files;  // what it reads, for a person
};

/// The kinds that io/meson.build lists.
std::span<const Entry<TokenizerKind>> tokenizers();

/// `choice`: "bytes"; a file such as tokenizer.json, vocab.txt or tokenizer.model; or a folder that
/// has one. `where` names the config key in errors.
std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& choice,
                                                const std::string& where);
/// `tokenizer`, or bytes where it is null.
std::shared_ptr<const Tokenizer> or_bytes(std::shared_ptr<const Tokenizer> tokenizer);
/// Whether `choice` names files: it is not "bytes", and has a '/' or a '.', or is there.
bool names_tokenizer_files(const std::string& choice);

/// The text for a terminal: printable ASCII as it is, all else as \n, \t, \\ or \xHH.
std::string escape_bytes(std::string_view bytes);

}  // namespace concertina
