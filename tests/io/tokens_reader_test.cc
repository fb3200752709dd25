// Files that do not declare their contents: the width of their tokens, or whether they are tokens.
#include <gtest/gtest.h>

#include "tests/io/reader_cases.h"

namespace concertina {
namespace {

/// Returns `ids` as numbers of `bits`.
std::string as_bits(const std::vector<std::int64_t>& ids, int bits) {
  if (bits == 16) return little_endian(std::vector<std::uint16_t>(ids.begin(), ids.end()));
  if (bits == 32) return little_endian(std::vector<std::uint32_t>(ids.begin(), ids.end()));
  return little_endian(ids);
}

// Without a header, the vocabulary determines the width; files of another width are rejected.
TEST(Tokens, TheWidthOfAFileWithoutAHeaderFollowsFromTheVocabulary) {
  Random random(7);
  CaseFolder folder(reader_case("Files of nanoGPT"));
  for (const std::int64_t vocabulary : {300, 50257, 65536, 65537, 100277, 128256, 256000, 1 << 20})
    for (const std::int64_t default_value : {std::int64_t{300}, std::int64_t{5000}, vocabulary})
      for (const std::int64_t count : {200, 30011, 90000})
        for (const int bits : {16, 32, 64}) {
          std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
          for (std::int64_t& id : ids)
            id = draw(random, 0, std::min(default_value, vocabulary) - 1);
          ids[ids.size() / 3] =
              std::min<std::int64_t>(vocabulary - 1, bits == 16 ? 65535 : 1 << 30);
          if (bits == 16)
            for (std::int64_t& id : ids) id %= 65536;
          folder("train.bin", as_bits(ids, bits));
          folder.options.vocabulary = vocabulary;
          folder.options.tokens_per_sample = count - 1;
          SCOPED_TRACE(fmt::format("{} of {} tokens in {} bits, most below {}", count, vocabulary,
                                   bits, default_value));
          if (bits != (vocabulary <= 65536 ? 16 : 32)) {
            EXPECT_ERROR(open_dataset(folder.options),
                         fmt::format("seems to have {}-bit tokens", bits));
            continue;
          }
          const auto dataset = open_dataset(folder.options);
          dataset->verify([] {});
          const std::vector<std::int32_t> read = sample_of(*dataset, {}).of.at("tokens");
          EXPECT_TRUE(std::equal(read.begin(), read.end(), ids.begin()));
        }
}

// A model with a larger vocabulary than the data: tokens of text of 128,000 in one of 65,536.
TEST(Tokens, WideTokensBeyondTheVocabularyAreNotReadAsNarrowOnes) {
  Random random(8);
  const CaseFolder folder(reader_case("Files of nanoGPT"));
  std::vector<std::int64_t> ids(6000);
  for (std::int64_t& id : ids) id = draw(random, 66000, 128000);
  for (const int bits : {32, 64}) {
    folder("train.bin", as_bits(ids, bits));
    EXPECT_ERROR(open_dataset(folder.options), fmt::format("seems to have {}-bit tokens", bits));
  }
}

TEST(Tokens, WideTextIsRefused) {
  Random random(9);
  CaseFolder folder(reader_case("Files of nanoGPT"));
  std::string utf16, swapped, utf32;
  for (int i = 0; i < 6000; ++i) {
    const char c = i % 60 == 59 ? '\n' : static_cast<char>(draw(random, ' ', '~'));
    utf16 += {c, '\0'};
    swapped += {'\0', c};
    utf32 += {c, '\0', '\0', '\0'};
  }
  for (const std::int64_t vocabulary : {65536, 128256})
    for (const auto& [bytes, kind] : {std::pair{"\xff\xfe" + utf16, "UTF-16"},
                                      {"\xfe\xff" + swapped, "UTF-16"},
                                      {utf16, "UTF-16"},
                                      {swapped, "UTF-16"},
                                      {utf32, "UTF-32"}}) {
      folder("train.bin", bytes.substr(0, bytes.size() / 8 * 8));
      folder.options.vocabulary = vocabulary;
      EXPECT_ERROR(open_dataset(folder.options), kind);
    }
}

}  // namespace
}  // namespace concertina
