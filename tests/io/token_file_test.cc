// Our token file: round trips and damaged bytes.
#include <gtest/gtest.h>

#include "tests/io/reader_cases.h"
#include "tests/io/token_files.h"

namespace concertina {
namespace {

const std::string& bytes_fingerprint() {
  static const std::string kFingerprint = make_tokenizer("bytes", "test")->fingerprint();
  return kFingerprint;
}

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

/// More than one hashed block, and more tokens than are read at a time.
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
  const CaseFolder folder(reader_case("Files of data prepare, of 16 bits"));
  const std::string file = folder.options.files[0], sound = slurp(file);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 16);
    folder("train.tok", bytes);
    SCOPED_TRACE(at);
    EXPECT_ERROR(TokenFile(file).verify(), "train.tok: byte");
    EXPECT_ERROR(open_dataset(folder.options)->verify({}), "train.tok");
  }
  for (std::size_t size = 0; size < sound.size(); ++size) {
    folder("train.tok", sound.substr(0, size));
    SCOPED_TRACE(size);
    EXPECT_ERROR(TokenFile(file), "train.tok: byte");
  }
}

}  // namespace
}  // namespace concertina
