// Expressions for bytes in case files: sequences of literals and calls.
#include <functional>

#include "tests/io/reader_cases.h"
#include "tests/io/token_files.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

/// The arguments of a call: numbers and texts, in order.
struct Arguments {
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;

  std::int64_t number(std::size_t i, std::int64_t default_value = 0) const {
    return i < numbers.size() ? numbers[i] : default_value;
  }
};

template <class T>
std::string packed(const Arguments& of) {
  return little_endian(std::vector<T>(of.numbers.begin(), of.numbers.end()));
}

std::string big_endians(const Arguments& of) {
  std::string bytes;
  for (const std::int64_t number : of.numbers)
    bytes += big_endian(static_cast<std::uint32_t>(number));
  return bytes;
}

/// ramp(COUNT, FIRST, STEP)
std::string ramp_of(const Arguments& of) {
  std::string bytes;
  for (std::int64_t i = 0; i < of.number(0); ++i)
    bytes += static_cast<char>(of.number(1) + i * of.number(2, 7));
  return bytes;
}

std::string repeated(const Arguments& of) {
  std::string bytes;
  for (std::int64_t i = 0; i < of.number(0); ++i) bytes += of.texts[0];
  return bytes;
}

/// Returns the first bytes of a text; a negative number removes that many at the end.
std::string cut(const Arguments& of) {
  const std::int64_t end = of.number(0);
  return of.texts[0].substr(
      0, static_cast<std::size_t>(end < 0 ? std::ssize(of.texts[0]) + end : end));
}

/// Returns a text with another written over it at a byte position.
std::string overwritten(const Arguments& of) {
  std::string bytes = of.texts[0];
  return bytes.replace(static_cast<std::size_t>(of.number(0)), of.texts[1].size(), of.texts[1]);
}

std::string gzipped(const Arguments& of) {
  const Folder folder;
  gzip(folder.path("a"), of.texts[0]);
  return slurp(folder.path("a"));
}

std::string png_of(const Arguments& of) {
  return png(static_cast<std::uint32_t>(of.number(0)), static_cast<std::uint32_t>(of.number(1)),
             static_cast<int>(of.number(2)), of.texts[0], static_cast<int>(of.number(3, 8)));
}

std::string tar_of(const Arguments& of) {
  Members members;
  for (std::size_t i = 0; i + 1 < of.texts.size(); i += 2)
    members.emplace_back(of.texts[i], of.texts[i + 1]);
  return tar(members);
}

/// token_file(VOCABULARY, TOKENIZER, TOKENS OF FOUR BYTES, BOUNDS OF EIGHT)
std::string token_file_of(const Arguments& of) {
  const Folder folder;
  std::vector<std::int32_t> tokens(of.texts[1].size() / 4);
  std::vector<std::uint64_t> bounds(of.texts[2].size() / 8);
  std::memcpy(tokens.data(), of.texts[1].data(), of.texts[1].size());
  std::memcpy(bounds.data(), of.texts[2].data(), of.texts[2].size());
  write_token_file(
      folder.path("a"), static_cast<std::uint64_t>(of.number(0)),
      of.texts[0] == "bytes" ? make_tokenizer("bytes", "")->fingerprint() : of.texts[0], tokens,
      bounds);
  return slurp(folder.path("a"));
}

const std::map<std::string, std::function<std::string(const Arguments&)>>& calls() {
  static const std::map<std::string, std::function<std::string(const Arguments&)>> kCalls{
      {"u8", packed<std::uint8_t>},
      {"u16", packed<std::uint16_t>},
      {"i32", packed<std::int32_t>},
      {"i64", packed<std::int64_t>},
      {"be32", big_endians},
      {"ramp", ramp_of},
      {"repeat", repeated},
      {"cut", cut},
      {"set", overwritten},
      {"gzip", gzipped},
      {"png", png_of},
      {"chunk", [](auto& of) { return with_chunk(of.texts[0], of.texts[1], of.texts[2]); }},
      {"exif", [](auto& of) { return exif(static_cast<int>(of.number(0))); }},
      {"turned", [](auto& of) { return with_exif(of.texts[0], static_cast<int>(of.number(0))); }},
      {"grey_jpeg", [](auto&) { return grey_jpeg(); }},
      {"color_jpeg", [](auto&) { return color_jpeg(); }},
      {"tar", tar_of},
      {"token_file", token_file_of}};
  return kCalls;
}

class BytesReader {
 public:
  explicit BytesReader(const std::string& text) : text_(text) {}

  /// Parses terms up to the end of the text, a comma or a parenthesis.
  std::string terms() {
    std::string bytes;
    for (skip(); at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')'; skip())
      bytes += text_[at_] == '"' ? literal() : call();
    return bytes;
  }

 private:
  void skip() { at_ = std::min(text_.find_first_not_of(' ', at_), text_.size()); }

  std::string literal() {
    std::string bytes;
    for (++at_; text_.at(at_) != '"'; ++at_) bytes += text_[at_] == '\\' ? escaped() : text_[at_];
    ++at_;
    return bytes;
  }
  char escaped() {
    switch (const char c = text_.at(++at_)) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case '0':
        return '\0';
      case 'x':
        at_ += 2;
        return static_cast<char>(std::stoi(text_.substr(at_ - 1, 2), nullptr, 16));
      default:
        return c;
    }
  }
  std::string call() {
    const std::size_t open = text_.find('(', at_);
    const std::string name = text_.substr(at_, open - at_);
    Arguments arguments;
    for (at_ = open; text_.at(at_) != ')';) {
      ++at_;
      skip();
      if (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9'))
        arguments.numbers.push_back(number());
      else if (text_[at_] != ')')
        arguments.texts.push_back(terms());
      skip();
    }
    ++at_;
    return calls().at(name)(arguments);
  }
  std::int64_t number() {
    std::size_t digits = 0;
    const auto value = static_cast<std::int64_t>(std::stoll(text_.substr(at_), &digits, 0));
    at_ += digits;
    return value;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string bytes_of(const std::string& expression) {
  return BytesReader(expression).terms();
}

}  // namespace concertina
