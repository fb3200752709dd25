// Held-out text that is also trained on, in whatever form, and classes without training data.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "io/sha256.h"
#include "tests/io/reader_files.h"
#include "tests/io/token_files.h"

namespace concertina {
namespace {

/// A token is two characters, so a text shifted by one has different tokens.
class Pairs : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 65537; }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    for (std::size_t i = 0; i < text.size(); i += 2)
      tokens.push_back(static_cast<unsigned char>(text[i]) |
                       (i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) << 8 : 0));
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      text += static_cast<char>(token & 255);
      if (token > 255) text += static_cast<char>(token >> 8);
    }
    return text;
  }
  std::size_t cut(std::string_view text, std::size_t) const override { return text.size(); }
  std::string name(std::int32_t token) const override { return std::to_string(token); }
  std::string fingerprint() const override { return "pairs"; }
  std::optional<std::int32_t> special(SpecialToken which) const override {
    return which == SpecialToken::end ? std::optional(65536) : std::nullopt;
  }
};

std::string prose(int seed, int words) {
  Random random(static_cast<std::uint64_t>(seed));
  std::string text;
  for (int i = 0; i < words; ++i) text += std::to_string(draw(random, 0, 1 << 20)) + " ";
  return text;
}

struct Overlap : testing::Test {
  Folder folder;
  std::string own = prose(1, 4000), other = prose(2, 1000);

  /// Returns the result of checking a text, as text and as tokens: empty, or the error.
  std::string check(const std::string& train, const std::string& held, double allowed = 0.2) const {
    const auto tokens = [&](const std::string& name, const std::string& text) {
      return folder(name, little_endian(std::vector<std::uint16_t>(text.begin(), text.end())));
    };
    DataOptions options{.files = {folder("train.txt", train)},
                        .validation_files = {folder("held.txt", held)},
                        .most_overlap = allowed,
                        .tokens_per_sample = 16};
    try {
      open_dataset(options)->verify([] {});
      options.format = "tokens";
      options.vocabulary = 256;
      options.files = {tokens("train.bin", train)};
      options.validation_files = {tokens("held.bin", held)};
      open_dataset(options)->verify([] {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Overlap, CountsByItsShare) {
  const std::string half = other + prose(3, 1000);
  EXPECT_EQ(check(own, other), "");
  expect_has(check(own, own), "100.0% of");
  expect_has(check("x" + own + other, other), "data.validation_files");
  expect_has(check(own + other, half), "data.most_overlap = 0.5");
  EXPECT_EQ(check(own + other, half, 0.6), "");
}

TEST_F(Overlap, ALinkIsRefused) {
  const std::string train = folder("a.txt", own), link = folder.path("b.txt");
  std::filesystem::create_hard_link(train, link);
  const auto dataset =
      open_dataset({.files = {train}, .validation_files = {link}, .tokens_per_sample = 16});
  EXPECT_ERROR(dataset->verify([] {}), "is also in the training data");
}

/// Returns `text` with each run of white space replaced by `space`.
std::string respaced(const std::string& text, const std::function<std::string(int)>& space) {
  std::string other;
  int gap = 0;
  for (const char c : text) c == ' ' ? void(other += space(gap++)) : void(other += c);
  return other;
}

/// Ways in which a text may look different elsewhere.
std::map<std::string, std::function<std::string(std::string)>> disguises() {
  const auto by = [](const std::function<std::string(int)>& space) {
    return [space](const std::string& text) { return respaced(text, space); };
  };
  return {{"CRLF", by([](int i) { return i % 9 == 0 ? "\r\n" : " "; })},
          {"wrapped at another length", by([](int i) { return i % 7 == 0 ? "\n" : " "; })},
          {"indented", by([](int i) { return i % 9 == 0 ? "\n\t    " : " "; })},
          {"tabs", by([](int) { return "\t"; })},
          {"no-break spaces", by([](int) { return "\xc2\xa0"; })},
          {"without space", by([](int) { return ""; })},
          {"upper case", [](std::string text) {
             for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
             return text;
           }}};
}

/// Returns words with capitals, so that case matters.
std::string words(int seed, int count) {
  std::string text = prose(seed, count);
  for (char& c : text) c = static_cast<char>(c == ' ' ? ' ' : (c % 2 == 0 ? 'a' : 'A') + c - '0');
  return text;
}

/// Returns `whole` as a text file, or in rows of about `size` bytes, without splitting characters.
std::string file_of(const std::string& format, const std::string& whole, std::size_t size) {
  if (format == "text") return whole;
  std::string all = format == "csv" ? "text\n" : "";
  for (std::size_t at = 0, end = 0; at < whole.size(); at = end) {
    end = std::min(at + size, whole.size());
    while (end < whole.size() && (whole[end] & 0xC0) == 0x80) ++end;
    const std::string row = whole.substr(at, end - at);
    all += (format == "csv" ? "\"" + row + "\"" : nlohmann::json{{"text", row}}.dump()) + "\n";
  }
  return all;
}

TEST_F(Overlap, ACopyInAnotherFormIsRefused) {
  for (const auto& [format, documents] : {std::pair<std::string, std::string>{"text", "alone"},
                                          {"jsonl", "joined"},
                                          {"jsonl", "packed"},
                                          {"csv", "joined"},
                                          {"csv", "packed"}}) {
    const std::string text = words(1, format == "text" ? 40000 : 6000);
    for (const auto& [name, disguise] : disguises())
      for (const std::shared_ptr<const Tokenizer>& tokenizer :
           {std::shared_ptr<const Tokenizer>(), std::shared_ptr<const Tokenizer>(new Pairs)}) {
        const auto held = [&, &format = format](const std::string& of) {
          return folder("held", file_of(format, of, 900));
        };
        const DataOptions options{.format = format,
                                  .files = {folder("train", file_of(format, text, 100))},
                                  .validation_files = {held(disguise(text.substr(1001, 60000)))},
                                  .tokenizer = tokenizer,
                                  .validation = 0,
                                  .tokens_per_sample = 16,
                                  .labelled = false,
                                  .documents = documents};
        SCOPED_TRACE(format + " " + documents + " " + name);
        EXPECT_ERROR(open_dataset(options)->verify([] {}), "is also in the training data");
        held(disguise(words(2, 3000)));
        EXPECT_NO_THROW(open_dataset(options)->verify([] {}));
      }
  }
}

TEST_F(Overlap, PreparedFilesAreComparedAsText) {
  const auto pairs = std::make_shared<const Pairs>();
  const auto prepared = [&](const std::string& name, const std::string& text) {
    const std::vector<std::int32_t> tokens = pairs->tokens(text);
    write_token_file(folder.path(name), 65537, sha256_hex("pairs"), tokens, {0, tokens.size()});
    return folder.path(name);
  };
  const std::string text = words(1, 4000);
  DataOptions options{
      .format = "tokens", .validation = 0, .tokens_per_sample = 16, .vocabulary = 65537};
  options.files = {prepared("train", text)};
  options.validation_files = {prepared("held", text.substr(3001, 9000))};  // other pairs
  EXPECT_NO_THROW(open_dataset(options)->verify([] {})) << "the meaning of the tokens is unknown";
  struct Named final : Pairs {
    std::string fingerprint() const override { return sha256_hex("pairs"); }
  };
  options.tokenizer = std::make_shared<const Named>();
  EXPECT_ERROR(open_dataset(options)->verify([] {}), "is also in the training data");
}

// A tag that occurs in only one sentence, which may be held out.
TEST(HeldOutClass, IsRefusedWhereItIsDrawn) {
  const Folder folder;
  int refused = 0, read = 0;
  for (int rare = 0; rare < 20; ++rare) {
    std::string text;
    for (int i = 0; i < 20; ++i)
      text += fmt::format("w{} X\nv{} {}\n\n", i, i, i == rare ? "R" : "Y");
    DataOptions options{.format = "conll",
                        .files = {folder("a", text)},
                        .validation = 0.3,
                        .tokens_per_sample = 16,
                        .targets = TargetKind::tags};
    try {
      open_dataset(options);
      ++read;
    } catch (const Error& error) {
      expect_has(error.what(), "no sentence in training has the label 'R'");
      expect_has(error.what(), fmt::format("a:{}", 3 * rare + 1));
      ++refused;
    }
    options.options["missing_classes"] = true;
    EXPECT_NO_THROW(open_dataset(options));
  }
  EXPECT_EQ(refused, 6);
  EXPECT_EQ(read, 14);
}

}  // namespace
}  // namespace concertina
