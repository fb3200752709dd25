// Our token file: round trips, lies, and the dataset that reads it.
#include <gtest/gtest.h>

#include "tests/io/reader_files.h"
#include "tests/io/token_files.h"

namespace concertina {
namespace {

const std::string& bytes_fingerprint() {
  static const std::string kFingerprint = make_tokenizer("bytes", "test")->fingerprint();
  return kFingerprint;
}

struct Prepared : Folder {
  std::vector<std::int32_t> tokens{84, 111, 32, 98, 101, 44, 32};  // "To be, "
  std::string file = path("train.tok");
  DataOptions options{.format = "tokens",
                      .files = {file},
                      .validation = 0,
                      .tokens_per_sample = 3,
                      .vocabulary = 256,
                      .options = {{"windows", "fixed"}}};
  Prepared() { write_token_file(file, 256, bytes_fingerprint(), tokens, {0, 3, 3, 7}); }
};

TEST(TokenFile, WhatIsWrittenIsRead) {
  const Folder folder;
  Random random(7);
  for (const std::uint64_t vocabulary : {1ULL, 256ULL, 65536ULL, 65537ULL, 1ULL << 31}) {
    for (const std::int64_t size : {1, 2, 3, 5, 1000}) {
      std::vector<std::int32_t> tokens;
      for (std::int64_t i = 0; i < size; ++i)
        tokens.push_back(
            static_cast<std::int32_t>(draw(random, 0, static_cast<std::int64_t>(vocabulary) - 1)));
      std::vector<std::uint64_t> bounds{0};
      while (bounds.back() < tokens.size())
        bounds.push_back(static_cast<std::uint64_t>(
            draw(random, static_cast<std::int64_t>(bounds.back()), size)));
      const std::string path = folder.path("a");
      write_token_file(path, vocabulary, bytes_fingerprint(), tokens, bounds);
      const TokenFile file(path);
      EXPECT_EQ(file.info().vocabulary, vocabulary);
      EXPECT_EQ(file.info().width(), vocabulary <= 65536 ? 2 : 4);
      EXPECT_EQ(file.info().tokenizer, bytes_fingerprint());
      EXPECT_EQ(file.info().bytes(), std::filesystem::file_size(path));
      std::vector<std::int32_t> read(tokens.size());
      file.read(0, read);
      EXPECT_EQ(read, tokens);
      std::vector<std::uint64_t> read_bounds(bounds.size());
      file.bounds(0, read_bounds);
      EXPECT_EQ(read_bounds, bounds);
      file.verify();
    }
  }
}

/// More than one hashed block, and more tokens than are read at once.
TEST(TokenFile, LargeOnesAreVerifiedBlockByBlock) {
  const Folder folder;
  std::vector<std::int32_t> tokens(9 << 20);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i % 50257);
  const std::string path = folder.path("a");
  write_token_file(path, 50257, bytes_fingerprint(), tokens, {0, tokens.size()});
  ASSERT_EQ(TokenFile(path).info().blocks(), 2U);
  TokenFile(path).verify();
  File file(path, File::Mode::open_or_create);
  const auto last = static_cast<std::byte>(1);
  file.write_at(TokenFileInfo::kTokensAt + 2 * tokens.size() - 2, std::span(&last, 1));
  EXPECT_ERROR(TokenFile(path).verify(), "the file is damaged");
}

TEST(TokenFile, EveryDamagedByteIsSeen) {
  const Prepared folder;
  const std::string sound = slurp(folder.file);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 16);
    folder("train.tok", bytes);
    SCOPED_TRACE(at);
    EXPECT_ERROR(TokenFile(folder.file).verify(), "train.tok: byte");
    EXPECT_ERROR(open_dataset(folder.options)->verify({}), "train.tok");
  }
  for (std::size_t size = 0; size < sound.size(); ++size) {
    folder("train.tok", sound.substr(0, size));
    SCOPED_TRACE(size);
    EXPECT_ERROR(TokenFile(folder.file), "train.tok: byte");
  }
}

TEST(TokenFile, LiesAreNamed) {
  const Prepared folder;
  const std::string sound = slurp(folder.file);
  const auto refused = [&](std::size_t at, std::uint64_t value, const std::string& what) {
    std::string bytes = sound;
    bytes.replace(at, 8, little_endian(std::vector{value}));
    folder("train.tok", bytes);
    EXPECT_ERROR(open_dataset(folder.options), what);
  };
  refused(24, 4, "tokens of 4 bytes");
  refused(32, 0, "the vocabulary has 0 tokens");
  refused(32, 1ULL << 40, "the vocabulary has 1099511627776 tokens");
  refused(40, 8, "document 3 begins with token 7; they ascend from 0 to 8, the end");
  refused(40, 9, "9 tokens and 3 documents do not make a file");
  refused(40, 1ULL << 63, "tokens and 3 documents do not make");
  refused(48, 1ULL << 61, "documents do not make");
  refused(56, 1, "the rest of the header is 0");
  folder("train.tok", sound + "x");
  EXPECT_ERROR(open_dataset(folder.options), "do not make a file of 177 bytes");
}

TEST(TokenFile, TokensAndBoundsAreChecked) {
  const Prepared folder;
  write_token_file(folder.file, 100, bytes_fingerprint(), folder.tokens, {0, 7});
  EXPECT_ERROR(TokenFile(folder.file).verify(), "token 111 is not in the vocabulary [0, 100)");
  write_token_file(folder.file, 256, bytes_fingerprint(), folder.tokens, {0, 5, 4, 7});
  EXPECT_ERROR(TokenFile(folder.file).verify(), "document 2 begins with token 4");
  write_token_file(folder.file, 256, bytes_fingerprint(), folder.tokens, {1, 7});
  EXPECT_ERROR(TokenFile(folder.file).verify(), "document 0 begins with token 1");
  write_token_file(folder.file, 256, bytes_fingerprint(), folder.tokens, {0, 6});
  EXPECT_ERROR(TokenFile(folder.file).verify(), "document 1 begins with token 6");
}

TEST(TokenFile, TheDatasetOfTokensReadsIt) {
  Prepared folder;
  folder.options.tokenizer = make_tokenizer("bytes", "test");
  const auto dataset = open_dataset(folder.options);
  EXPECT_EQ(dataset->vocabulary(), 256);
  EXPECT_EQ(dataset->samples(Split::train), 2U);
  EXPECT_EQ(sample_of(*dataset, {.sample = 1}).of.at("tokens"),
            (std::vector<std::int32_t>{98, 101, 44}));
  EXPECT_EQ(sample_of(*dataset, {.sample = 1}).of.at("targets"),
            (std::vector<std::int32_t>{101, 44, 32}));
  EXPECT_TRUE(contains(dataset->summary(), "begins      To be, \n")) << dataset->summary();
}

TEST(TokenFile, FilesAreOfOneTokenizer) {
  Prepared folder;
  const std::string other(64, 'a');
  write_token_file(folder.path("b"), 256, other, folder.tokens, {0, 7});
  folder.options.files.push_back(folder.path("b"));
  EXPECT_ERROR(open_dataset(folder.options), "were made by different tokenizers");
  // A tokenizer with files of its own: the vocabulary of BERT's kind.
  folder("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\nb\n");
  folder.options.files = {folder.file};
  folder.options.tokenizer = make_tokenizer(folder.path("vocab.txt"), "test");
  EXPECT_ERROR(open_dataset(folder.options), "was made by another tokenizer");
  write_token_file(folder.file, 7, folder.options.tokenizer->fingerprint(), {5, 6, 5, 6, 5},
                   {0, 5});
  EXPECT_EQ(open_dataset(folder.options)->vocabulary(), 7);
  // "bytes" is a tokenizer like others. The error names the file, both tokenizers and the key.
  const std::string made = folder.options.tokenizer->fingerprint().substr(0, 12);
  folder.options.tokenizer = make_tokenizer("bytes", "test");
  EXPECT_ERROR(open_dataset(folder.options),
               folder.file + " was made by another tokenizer: the one whose fingerprint is " +
                   made + "..., and data.tokenizer is \"bytes\"");
  EXPECT_ERROR(open_dataset(folder.options), "data.tokenizer = ");
  folder.options.tokenizer = nullptr;  // nobody asks for text
  EXPECT_EQ(open_dataset(folder.options)->vocabulary(), 7);
}

}  // namespace
}  // namespace concertina
