// Text in chunks: tokens and documents are those of the whole text, wherever it is cut.
#include <gtest/gtest.h>

#include "io/labelled/table_text.h"
#include "io/prepare/chunk_file.h"
#include "io/prepare/text_chunks.h"
#include "io/sha256.h"
#include "io/token_file.h"
#include "io/tokenizers/bpe_trainer.h"
#include "io/tokenizers/characters/unicode.h"
#include "tests/io/reader_files.h"

namespace concertina {
namespace {

/// The tokens of all chunks.
struct AllTokens {
  std::string packed;
  std::vector<std::uint64_t> starts;
  std::uint64_t tokens = 0;
};

AllTokens all_tokens(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                     const PrepareOptions& options) {
  const Corpus corpus(files, "test");
  TextChunks chunks(corpus, tokenizer, options);
  AllTokens all;
  std::string text;
  for (std::uint64_t c = 0; c < chunks.count(); ++c) {
    const TextChunk chunk = chunks.read(c);
    text += chunk.text;
    for (const TextChunk& file : chunk.more) text += file.text;
    const ChunkTokens made = chunks.encode(chunk);
    for (const std::uint64_t start : made.starts) all.starts.push_back(all.tokens + start);
    all.packed += made.packed;
    all.tokens += made.tokens;
  }
  if (options.rows == nullptr) {
    EXPECT_EQ(text.size(), corpus.size());
  }
  return all;
}

/// Returns lines with a small vocabulary, empty lines, CR LF, multi-byte letters, and runs of
/// spaces.
std::string random_text(Random& random, std::int64_t pieces) {
  const std::vector<std::string> words{"the", " cat", " sat",  "\n", "\n",  "\n\n",     "\r\n",
                                       "\r",  "ü",    " 漢字", "  ", " 12", "\r\n\r\n", "\n\n\n"};
  std::string text;
  for (std::int64_t i = 0; i < pieces; ++i)
    text += words[static_cast<std::size_t>(draw(random, 0, std::ssize(words) - 1))];
  return text;
}

std::string learned_tokenizer(const Folder& folder, bool prefix_space = false) {
  WordCounts counts;
  const WordPattern pattern(WordPattern::gpt2(), "test", prefix_space);
  Random random(1);
  count_words(pattern, random_text(random, 5000), counts);
  return folder("tokenizer.json",
                description_of(learn_pairs(counts, 290, {"<|endoftext|>"}), pattern));
}

TEST(Prepare, RowsOfATableAreTheDocumentsThatARunWouldRead) {
  const Folder folder;
  DataOptions data{.format = "csv", .validation = 0};
  std::string table = "id,text\n";
  for (int i = 0; i < 300; ++i)
    table += fmt::format("{},{}\n", i, std::string(i % 17, static_cast<char>('a' + i % 26)));
  data.files = {folder("t.csv", table)};
  data.options["windows"] = "fixed";
  data.tokens_per_sample = 1;
  data.documents = "joined";
  data.labelled = false;
  std::array<std::uint64_t, 3> counts{};
  const LabelledRows rows = rows_of(data, counts);
  const auto bytes = or_bytes(nullptr);
  std::vector<std::int32_t> expected;
  const auto dataset = open_dataset(data);
  for (std::uint64_t s = 0; s < dataset->samples(Split::train); ++s) {
    const auto sample = sample_of(*dataset, {.sample = s});
    if (s == 0) expected.push_back(sample.of.at("tokens")[0]);
    expected.push_back(sample.of.at("targets")[0]);
  }
  for (const std::uint64_t size : {9ULL, 100ULL, 1ULL << 20}) {
    PrepareOptions options{.end = end_of_row(*bytes), .rows = &rows};
    options.chunk_bytes = size;
    const AllTokens all = all_tokens(data.files, *bytes, options);
    EXPECT_EQ(all.packed, packed_tokens(expected, 2)) << size;
    EXPECT_EQ(all.starts.size(), 282U);  // 18 are empty
  }
}

/// Each chunk requires syncing a file.
TEST(Prepare, SmallFilesShareAChunk) {
  const Folder folder;
  std::vector<std::string> files;
  for (int i = 0; i < 100; ++i) files.push_back(folder(std::to_string(i), std::string(90, 'x')));
  files.push_back(folder("long", std::string(2500, 'y')));
  files.push_back(folder("last", "z"));
  const auto bytes = or_bytes(nullptr);
  PrepareOptions options;
  options.chunk_bytes = 1000;
  const Corpus corpus(files, "test");
  EXPECT_EQ(TextChunks(corpus, *bytes, options).count(), 10U + 3U + 1U);
  const AllTokens all = all_tokens(files, *bytes, options);
  EXPECT_EQ(all.tokens, corpus.size());
  EXPECT_EQ(all.starts.size(), 102U);
}

TEST(Prepare, AnySizeOfChunksGivesTheSameTokens) {
  const Folder folder;
  const auto bpe = make_tokenizer(learned_tokenizer(folder), "test");
  ASSERT_TRUE(bpe->special(SpecialToken::end).has_value());
  for (std::uint64_t turn = 0; turn < 60; ++turn) {
    Random random(turn);
    const std::vector<std::string> files{folder("a", random_text(random, draw(random, 1, 2000))),
                                         folder("b", ""),
                                         folder("c", random_text(random, draw(random, 1, 200)))};
    for (const DocumentRule rule :
         {DocumentRule::file, DocumentRule::line, DocumentRule::blank_line}) {
      PrepareOptions options;
      options.documents = rule;
      if (turn % 2 == 0) options.end = {*bpe->special(SpecialToken::end)};
      options.chunk_bytes = 1 << 20;
      const AllTokens whole = all_tokens(files, *bpe, options);
      for (const std::uint64_t size : {9ULL, 64ULL, 1000ULL}) {
        options.chunk_bytes = size;
        const AllTokens cut = all_tokens(files, *bpe, options);
        ASSERT_EQ(cut.packed, whole.packed) << "turn " << turn << ", chunks of " << size;
        ASSERT_EQ(cut.starts, whole.starts) << "turn " << turn << ", chunks of " << size;
      }
    }
  }
}

TEST(Prepare, TokensOfAFileAreThoseOfTheTokenizer) {
  for (const bool prefix_space : {false, true}) {
    const Folder folder;
    const auto bpe = make_tokenizer(learned_tokenizer(folder, prefix_space), "test");
    Random random(3);
    const std::string text = "the" + random_text(random, 3000);
    PrepareOptions options;
    options.chunk_bytes = 100;
    EXPECT_EQ(all_tokens({folder("a", text)}, *bpe, options).packed,
              packed_tokens(bpe->tokens(text), 2))
        << "prefix space: " << prefix_space;
  }
}

/// A line longer than the first search for a place to cut.
TEST(Prepare, LongLinesAreNotCut) {
  const Folder folder;
  const auto bpe = make_tokenizer(learned_tokenizer(folder), "test");
  const std::string text = std::string(300'000, 'x') + "\n" + std::string(700'000, 'y') + "\ncat\n";
  PrepareOptions options;
  options.chunk_bytes = 1000;
  EXPECT_EQ(all_tokens({folder("a", text)}, *bpe, options).packed,
            packed_tokens(bpe->tokens(text), 2));
  options.documents = DocumentRule::line;
  EXPECT_EQ(all_tokens({folder("a", text)}, *bpe, options).starts.size(), 3U);
}

/// Returns the documents of `text` as bytes, with '|' before each and '$' (36) for the end token.
std::string documents_of(const std::string& text, DocumentRule rule, bool end) {
  const Folder folder;
  PrepareOptions options;
  options.documents = rule;
  if (end) options.end = {36};
  const AllTokens all = all_tokens({folder("a", text)}, *make_tokenizer("bytes", "test"), options);
  std::string shown;
  std::size_t next = 0;
  for (std::uint64_t i = 0; i < all.tokens; ++i) {
    for (; next < all.starts.size() && all.starts[next] == i; ++next) shown += '|';
    shown += all.packed[2 * i];
  }
  return shown;
}

TEST(Prepare, RulesOfDocuments) {
  const std::string text = "a\nb\n\nc\r\n\r\n\nd";
  EXPECT_EQ(documents_of(text, DocumentRule::file, false), "|" + text);
  EXPECT_EQ(documents_of(text, DocumentRule::file, true), "|" + text + "$");
  EXPECT_EQ(documents_of(text, DocumentRule::line, false), "|a\n|b\n|\n|c\r\n|\r\n|\n|d");
  EXPECT_EQ(documents_of(text, DocumentRule::line, true), "|a$|b$|c$|d$");
  EXPECT_EQ(documents_of(text, DocumentRule::blank_line, false), "|a\nb\n\n|c\r\n\r\n\n|d");
  EXPECT_EQ(documents_of(text, DocumentRule::blank_line, true), "|a\nb$|c$|d$");
  EXPECT_EQ(documents_of("\n\n", DocumentRule::line, true), "");
}

TEST(Prepare, BadUtf8IsNamedWithItsFile) {
  const Folder folder;
  const auto bpe = make_tokenizer(learned_tokenizer(folder), "test");
  EXPECT_ERROR(all_tokens({folder("bad.txt", "good\nbad \xff\n")}, *bpe, {}), "bad.txt");
  PrepareOptions options;
  options.documents = DocumentRule::line;
  EXPECT_ERROR(all_tokens({folder("bad.txt", "good\nbad \xff\n")}, *bpe, options),
               "invalid UTF-8 at byte 4, relative to byte 5");
}

TEST(Prepare, OnlyWholeChunksOfTheSameKeyAreFound) {
  const Folder folder;
  const std::string path = chunk_path(folder.root.path(), 12);
  EXPECT_TRUE(path.ends_with("/chunk-00000012"));
  const std::string key = sha256_hex("this"), other = sha256_hex("that");
  EXPECT_EQ(load_chunk(path, key, 2).state, ChunkState::absent);
  const ChunkTokens chunk{.packed = "abcdef", .tokens = 3, .starts = {0, 2}};
  save_chunk(path, key, chunk);
  const FoundChunk found = load_chunk(path, key, 2);
  ASSERT_EQ(found.state, ChunkState::whole);
  EXPECT_EQ(found.chunk.packed, chunk.packed);
  EXPECT_EQ(found.chunk.tokens, 3U);
  EXPECT_EQ(found.chunk.starts, chunk.starts);
  EXPECT_EQ(load_chunk(path, other, 2).state, ChunkState::other);
  const std::string sound = slurp(path);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    spill(path, bytes);
    ASSERT_EQ(load_chunk(path, key, 2).state, ChunkState::damaged) << "byte " << at;
    spill(path, sound.substr(0, at));
    ASSERT_EQ(load_chunk(path, key, 2).state, ChunkState::damaged) << at << " bytes";
  }
}

TEST(Prepare, KeysTellTextsAndTokenizersApart) {
  const Folder folder;
  const auto bytes = make_tokenizer("bytes", "test");
  const auto bpe = make_tokenizer(learned_tokenizer(folder), "test");
  const Corpus corpus({folder("a", "some text\n")}, "test");
  const auto key_of = [&](const Tokenizer& tokenizer, const PrepareOptions& options) {
    TextChunks chunks(corpus, tokenizer, options);
    return chunks.key(chunks.read(0));
  };
  PrepareOptions lines, ends, large;
  lines.documents = DocumentRule::line;
  ends.end = {3};
  large.chunk_bytes = 1 << 24;
  const std::string key = key_of(*bytes, {});
  EXPECT_NE(key, key_of(*bpe, {}));
  EXPECT_NE(key, key_of(*bytes, lines));
  EXPECT_NE(key, key_of(*bytes, ends));
  EXPECT_EQ(key, key_of(*bytes, large)) << "the same text";
}

}  // namespace
}  // namespace concertina
