#include "io/tokenizers/sentencepiece_library.h"

#include <dlfcn.h>
#include <sentencepiece_processor.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>

#include "core/error.h"
#include "io/sha256.h"
#include "io/tokenizers/characters/unicode.h"
#include "io/tokenizers/tokenizer_files.h"

namespace concertina {
namespace {

/// The result of a library function: its util::Status is a pointer that is null on success.
class LibraryStatus {
 public:
  LibraryStatus(const LibraryStatus&) = delete;
  LibraryStatus& operator=(const LibraryStatus&) = delete;
  ~LibraryStatus();
  bool ok() const { return rep_ == nullptr; }
  std::string text() const;

 private:
  LibraryStatus() = default;
  void* rep_ = nullptr;
};
static_assert(sizeof(LibraryStatus) == sizeof(sentencepiece::util::Status));

/// The library's functions, by mangled name. The library is not linked: Debian's build exports its
/// private protobuf 3.14, and in a program with libonnx's libprotobuf, each would call functions of
/// the other and abort. If it is opened as below, each library finds its own copy first.
struct SentencePieceFunctions {
  void (*construct)(void* self);
  void (*destroy)(void* self);
  LibraryStatus (*load)(void* self, std::string_view model);
  LibraryStatus (*encode)(const void* self, std::string_view text, std::vector<int>* ids);
  LibraryStatus (*decode)(const void* self, const std::vector<int>& ids, std::string* text);
  const std::string& (*piece)(const void* self, int id);
  int (*pieces)(const void* self);
  int (*unknown)(const void* self);
  int (*begin)(const void* self);
  int (*end)(const void* self);
  int (*padding)(const void* self);
  void (*status_destroy)(void* status);
  std::string (*status_text)(const void* status);
};

#ifdef __SANITIZE_ADDRESS__
constexpr int kOpenOwnFirst = 0;  // not supported by AddressSanitizer
#else
constexpr int kOpenOwnFirst = RTLD_DEEPBIND;
#endif

/// Returns nothing if the library is missing or has a different version.
std::optional<SentencePieceFunctions> find_functions() {
  void* const library = ::dlopen("libsentencepiece.so.0", RTLD_NOW | RTLD_LOCAL | kOpenOwnFirst);
  if (library == nullptr) return std::nullopt;
  SentencePieceFunctions all{};
  bool whole = true;
  const auto find = [&](auto& function, const char* name) {
    void* const address = ::dlsym(library, name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    whole = whole && address != nullptr;
  };
  find(all.construct, "_ZN13sentencepiece22SentencePieceProcessorC1Ev");
  find(all.destroy, "_ZN13sentencepiece22SentencePieceProcessorD1Ev");
  find(all.load,
       "_ZN13sentencepiece22SentencePieceProcessor23LoadFromSerializedProtoESt17basic_string_"
       "viewIcSt11char_traitsIcEE");
  find(all.encode,
       "_ZNK13sentencepiece22SentencePieceProcessor6EncodeESt17basic_string_viewIcSt11char_"
       "traitsIcEEPSt6vectorIiSaIiEE");
  find(all.decode,
       "_ZNK13sentencepiece22SentencePieceProcessor6DecodeERKSt6vectorIiSaIiEEPNSt7__cxx1112basic_"
       "stringIcSt11char_traitsIcESaIcEEE");
  find(all.piece, "_ZNK13sentencepiece22SentencePieceProcessor9IdToPieceB5cxx11Ei");
  find(all.pieces, "_ZNK13sentencepiece22SentencePieceProcessor12GetPieceSizeEv");
  find(all.unknown, "_ZNK13sentencepiece22SentencePieceProcessor6unk_idEv");
  find(all.begin, "_ZNK13sentencepiece22SentencePieceProcessor6bos_idEv");
  find(all.end, "_ZNK13sentencepiece22SentencePieceProcessor6eos_idEv");
  find(all.padding, "_ZNK13sentencepiece22SentencePieceProcessor6pad_idEv");
  find(all.status_destroy, "_ZN13sentencepiece4util6StatusD1Ev");
  find(all.status_text, "_ZNK13sentencepiece4util6Status8ToStringB5cxx11Ev");
  return whole ? std::optional(all) : std::nullopt;
}

const std::optional<SentencePieceFunctions>& functions() {
  static const std::optional<SentencePieceFunctions> found = find_functions();
  return found;
}

LibraryStatus::~LibraryStatus() {
  functions()->status_destroy(this);
}

std::string LibraryStatus::text() const {
  return functions()->status_text(this);
}

/// An object of the library's class.
class SentencePieceModel {
 public:
  SentencePieceModel() { call().construct(memory_); }
  ~SentencePieceModel() { call().destroy(memory_); }
  SentencePieceModel(const SentencePieceModel&) = delete;
  SentencePieceModel& operator=(const SentencePieceModel&) = delete;

  static const SentencePieceFunctions& call() { return *functions(); }
  void* self() { return memory_; }
  const void* self() const { return memory_; }

 private:
  alignas(sentencepiece::SentencePieceProcessor)
      std::byte memory_[sizeof(sentencepiece::SentencePieceProcessor)];
};

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

  std::int64_t vocabulary() const override { return call_.pieces(model_.self()); }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    require_utf8(text);
    std::vector<int> ids;
    const LibraryStatus status = call_.encode(model_.self(), text, &ids);
    CONCERTINA_CHECK(status.ok(), "{}", status.text());
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    const std::vector<int> ids(tokens.begin(), tokens.end());
    const LibraryStatus status = call_.decode(model_.self(), ids, &text);
    CONCERTINA_CHECK(status.ok(), "{}", status.text());
    return text;
  }
  std::string name(std::int32_t token) const override { return call_.piece(model_.self(), token); }
  std::optional<std::int32_t> special(SpecialToken which) const override {
    if (const auto found = specials_.find(which); found != specials_.end()) return found->second;
    const auto function = which == SpecialToken::unknown   ? call_.unknown
                          : which == SpecialToken::begin   ? call_.begin
                          : which == SpecialToken::end     ? call_.end
                          : which == SpecialToken::padding ? call_.padding
                                                           : nullptr;
    const int id = function == nullptr ? -1 : function(model_.self());
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
      const LibraryStatus status = call_.load(model_.self(), model);
      return status.ok() ? "" : status.text();
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  const SentencePieceFunctions& call_ = SentencePieceModel::call();
  SentencePieceModel model_;
  std::string fingerprint_;
  std::map<SpecialToken, std::optional<std::int32_t>> specials_;  // specified by files
};

}  // namespace

bool has_sentencepiece() {
  return functions().has_value();
}

std::unique_ptr<Tokenizer> open_sentencepiece_model(const std::string& path,
                                                    const DeclaredTokens& declared) {
  if (!has_sentencepiece())
    throw_input("libsentencepiece.so.0 is missing or has an incompatible version", path,
                "install libsentencepiece0, or use a tokenizer.json");
  return std::make_unique<SentencePieceTokenizer>(path, declared);
}

}  // namespace concertina
