#include "io/tokenizers/tokenizer.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/log.h"
#include "io/file.h"
#include "io/tokenizers/tokenizer_files.h"
#include "tokenizer_table.h"

namespace concertina {

namespace tokenizer_kinds {
std::unique_ptr<Tokenizer> bytes();
}

CONCERTINA_REGISTRY_IN(CONCERTINA_TOKENIZERS, TokenizerKind, tokenizer_kinds, tokenizers)

std::shared_ptr<const Tokenizer> or_bytes(std::shared_ptr<const Tokenizer> tokenizer) {
  return tokenizer != nullptr ? std::move(tokenizer) : tokenizer_kinds::bytes();
}

bool names_tokenizer_files(const std::string& choice) {
  if (choice == kBytesTokenizer) return false;
  return choice.find_first_of("/.") != std::string::npos || exists_at(choice);
}

namespace {

/// Opens files with the first kind that supports them; returns null if there is none.
std::shared_ptr<const Tokenizer> opened(const TokenizerFiles& files) {
  for (const auto& [name, kind] : tokenizers())
    if (std::unique_ptr<Tokenizer> made = kind.open(files)) return made;
  return nullptr;
}

/// Opens the tokenizer.json of a folder if it is supported, otherwise the other tokenizer files
/// that published models may have.
std::shared_ptr<const Tokenizer> described_or_other(const TokenizerFiles& files) {
  try {
    auto made = opened(files);
    const std::string other = files.sentencepiece();
    if (made != nullptr && !other.empty())
      log::info("using {} and ignoring {}", files.description_path(), other);
    return made;
  } catch (const Error& error) {
    std::shared_ptr<const Tokenizer> other;
    try {
      other = opened(files.without_published());
    } catch (const Error&) {  // the first error is more informative
    }
    if (other == nullptr) throw;
    log::warn("{} ({}); reading the tokenizer from other files next to it",
              files.description_path(), error.message());
    return other;
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& choice,
                                                const std::string& where) {
  if (choice == kBytesTokenizer) return tokenizer_kinds::bytes();
  if (!names_tokenizer_files(choice))
    throw_input(fmt::format("unknown tokenizer '{}'", choice), where,
                fmt::format("use \"{}\", or the path of a file or folder", kBytesTokenizer));
  const TokenizerFiles files(choice, where);
  const bool both = !files.published().empty() && files.published() != choice;
  if (auto made = both ? described_or_other(files) : opened(files)) return made;
  std::string wanted;
  for (const auto& [name, kind] : tokenizers())
    wanted += fmt::format("{}{}", wanted.empty() ? "" : "; ", kind.files);
  throw_input(files.description() != nullptr ? "this tokenizer.json has no supported model type"
                                             : "no tokenizer found",
              choice, "use one of: " + wanted);
}

std::string escape_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else if (c == '\\')
      text += "\\\\";
    else if (c >= ' ' && c <= '~')
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace concertina
