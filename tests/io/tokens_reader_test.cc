// Files of tokens: those of nanoGPT, llm.c and Megatron.
#include <gtest/gtest.h>

#include "tests/io/reader_files.h"

namespace concertina {
namespace {

TEST(Tokens, FilesOfNanoGptLlmcAndMegatronAreRead) {
  const TokensFile folder;
  folder.expect_tokens();
  const std::string data = little_endian(folder.ids);
  folder("train.bin", llmc(20240520, 1, 7, data));
  folder.expect_tokens();
  const std::vector<std::int32_t> wide(folder.ids.begin(), folder.ids.end());
  folder("train.bin", llmc(20240801, 7, 7, little_endian(wide)));
  folder.expect_tokens();
  folder("train.bin", data);
  folder("train.idx", MegatronIndex().text());
  folder.expect_tokens();
  folder("train.bin", little_endian(wide));
  folder("train.idx", MegatronIndex{.type = 4, .offsets = {0, 12, 12}}.text());
  folder.expect_tokens();
}

TEST(Tokens, SeveralFilesAreOneText) {
  TokensFile folder;
  folder("train.bin", little_endian(std::vector<std::uint16_t>{1, 50000}));
  folder.options.files.push_back(folder(
      "more.bin", llmc(20240801, 7, 5, little_endian(std::vector<std::int32_t>{3, 4, 5, 6, 7}))));
  folder.expect_tokens();
}

TEST(Tokens, LiesAreNamed) {
  const TokensFile folder;
  const std::string data = little_endian(folder.ids);
  const auto refused = [&](const std::string& file, const std::string& what) {
    folder("train.bin", file);
    EXPECT_ERROR(read_all(*open_dataset(folder.options)), what);
  };
  refused(data + "x", "train.bin: byte 15");
  refused(little_endian(std::vector<std::uint16_t>{1, 2, 3, 4, 50257, 6, 7}),
          "token 50257 is not in the vocabulary [0, 50257)");
  refused(little_endian(std::vector<std::uint16_t>{1, 2, 3, 4, 50257, 6, 7}), "train.bin: byte 8");
  refused(llmc(20240520, 2, 7, data), "version 2");
  refused(llmc(20240520, 1, 8, data), "the header says 8 tokens");
  refused(llmc(20240520, 1, -1, data), "the header says -1 tokens");
  refused(llmc(20240522, 1, 7, data), "evaluation file");
  refused(llmc(20240520, 1, 7, "").substr(0, 500), "1024 bytes");
  refused(llmc(20240521, 1, 7, data), "20240521 is no magic number of llm.c");
  std::vector<std::int32_t> wide(80, 3);
  refused(little_endian(wide), "every second token");
  refused("\x93NUMPY" + std::string(300, '\1'), "this is an array of NumPy, not tokens");
  refused(std::string(100, 'a') + std::string(200, '\n'), "this is text, not tokens");
  refused(std::string(257, '\1') + "ustar" + std::string(300, '\1'), "this is a tar, not tokens");
  refused(llmc(__builtin_bswap32(20240520), 1, 7, data), "is no magic number of llm.c");
  wide[70] = 70000;
  folder("train.bin", little_endian(wide));  // one that has a second half
  read_all(*open_dataset(folder.options));
  folder("train.bin", data);
  const auto index_refused = [&](const std::string& index, const std::string& what) {
    folder("train.idx", index);
    EXPECT_ERROR(open_dataset(folder.options), what);
  };
  index_refused("MMIDIDY", "does not begin with MMIDIDX");
  index_refused(MegatronIndex{.version = 2}.text(), "version 2");
  index_refused(MegatronIndex{.type = 7}.text(), "type 7");
  index_refused(MegatronIndex{.sequences = 1ULL << 62}.text(), "do not make a file");
  index_refused(MegatronIndex{.lengths = {3, -1, 4}}.text(), "sequence 1 has length -1");
  index_refused(MegatronIndex{.offsets = {0, 4, 6}}.text(), "sequence 1 begins at byte 4");
  index_refused(MegatronIndex{.lengths = {3, 0, 5}}.text(), "the .bin file has 14");
  index_refused(MegatronIndex{.documents = {0, 2, 1}}.text(), "document 2 begins");
  index_refused(MegatronIndex{.documents = {1, 2, 3}}.text(), "document 0 begins");
}

}  // namespace
}  // namespace concertina
