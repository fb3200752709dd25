// Files, hashes and the tokenizer: complete reads and writes, durable replacement, known hashes.
#include "io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "io/process.h"
#include "io/sha256.h"
#include "io/tokenizers/tokenizer.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Sha256, KnownVectors) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, HmacIsThatOfRfc4231) {
  const Sha256Digest mac = hmac_sha256("Jefe", "what do ya want for nothing?");
  EXPECT_EQ((std::array{mac[0], mac[1], mac[31]}),
            (std::array{std::byte{0x5b}, std::byte{0xdc}, std::byte{0x43}}));
}

TEST(Sha256, DoesNotDependOnHowUpdatesAreCut) {
  Random random(1);
  const std::string text(1000, 'q');
  Sha256 hash;
  for (int round = 0; round < 20; ++round) {  // hex() restarts the hash
    for (std::size_t at = 0; at < text.size();) {
      const auto n = static_cast<std::size_t>(draw(random, 0, 200));
      hash.update(text.substr(at, n));
      at += n;
    }
    EXPECT_EQ(hash.hex(), sha256_hex(text));
  }
}

TEST(Sha256, HexFormIsStrict) {
  const std::string good = sha256_hex("");
  EXPECT_TRUE(is_sha256_hex(good));
  std::string upper = good;
  upper[0] = 'E';
  for (const std::string& bad :
       {upper, good + "0", good.substr(1), std::string(64, 'g'), std::string()})
    EXPECT_FALSE(is_sha256_hex(bad)) << bad;
}

TEST(File, WritesAndReadsAnyRange) {
  const TemporaryDirectory root;
  File file(root.path() + "/file", File::Mode::create);
  file.write_at(5, bytes("world"));
  file.write_at(0, bytes("hello"));
  file.sync();
  EXPECT_EQ(file.size(), 10U);
  file.reserve(100);
  EXPECT_EQ(file.size(), 100U);
  file.truncate(10);
  file.close();
  EXPECT_EQ(read_file(root.path() + "/file", 10), "helloworld");
  std::string part(4, ' ');
  const File in(root.path() + "/file", File::Mode::read);
  in.read_at(3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "lowo");
  EXPECT_THROW(in.read_at(7, std::as_writable_bytes(std::span(part))), Error);  // ends before
  EXPECT_THROW(read_file(root.path() + "/file", 9), Error);
}

TEST(File, ModesMeanWhatTheySay) {
  const TemporaryDirectory root;
  const std::string path = root.path() + "/file";
  EXPECT_THROW(File(path, File::Mode::read), Error);
  File(path, File::Mode::append).write("one ");
  File(path, File::Mode::append).write("two");
  EXPECT_EQ(slurp(path), "one two");
  EXPECT_THROW(File(path, File::Mode::create), Error);
  EXPECT_EQ(slurp(path), "one two");
}

TEST(File, ErrorsNameCallPathAndRemedy) {
  const TemporaryDirectory root;
  spill(root.path() + "/file", "");
  const Error error = thrown_by([&] { File(root.path() + "/file/below", File::Mode::create); });
  expect_has(error.message(), "open");
  expect_has(error.where(), "/file/below");
  expect_has(error.fix(), "is a file, not a directory");
  EXPECT_THROW(make_directories(root.path() + "/file"), Error);
  EXPECT_THROW(make_directories(root.path() + "/file/a/b"), Error);
  EXPECT_THROW(rename_path(root.path() + "/none", root.path() + "/to"), Error);
}

TEST(File, APipeInPlaceOfAFileDoesNotHang) {
  const TemporaryDirectory root;
  ASSERT_EQ(::mkfifo((root.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_THROW(File(root.path() + "/pipe", File::Mode::append), Error);
}

TEST(File, TreesAreMadeAndRemoved) {
  const TemporaryDirectory root;
  for (int again = 0; again < 2; ++again) make_directories(root.path() + "/a/b/c");
  spill(root.path() + "/a/b/file", "x");
  for (int again = 0; again < 2; ++again) remove_tree(root.path() + "/a");
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

/// At any time, a reader sees one complete content.
TEST(AtomicReplace, ReadersSeeTheOldOrTheNewContent) {
  const TemporaryDirectory root;
  const std::string path = root.path() + "/file";
  atomic_replace(path, std::string(5000, 'a'));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i)
      atomic_replace(path, std::string(5000 - i * 40, static_cast<char>('a' + i % 26)));
    done = true;
  });
  int reads = 0;
  for (; !done; ++reads) {
    const std::string content = slurp(path);
    const bool whole = !content.empty() && (5000 - content.size()) % 40 == 0 &&
                       content == std::string(content.size(), content[0]) &&
                       content[0] == static_cast<char>('a' + (5000 - content.size()) / 40 % 26);
    EXPECT_TRUE(whole) << content.size();
    if (!whole) break;
  }
  writer.join();
  EXPECT_GT(reads, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root.path()), {}), 1);
}

TEST(AtomicReplace, AFailureLeavesTheOldContent) {
  const TemporaryDirectory root;
  const std::string path = root.path() + "/file";
  make_directories(path);  // a directory cannot be replaced by a file
  EXPECT_THROW(atomic_replace(path, "new"), Error);
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  spill(root.path() + "/old.tmp", "what a killed process left");
  atomic_replace(root.path() + "/old", "new");
  EXPECT_EQ(slurp(root.path() + "/old"), "new");
}

TEST(File, RoomIsHeldWithoutAName) {
  const TemporaryDirectory root;
  spill(root.path() + "/room.tmp", "what a killed process left");
  const File room = reserve_room(root.path(), 1 << 20);
  EXPECT_EQ(room.size(), 1U << 20);
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

TEST(Tokenizer, BytesRoundTrip) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const auto tokens = make_tokenizer("bytes", "")->tokens(all);
  for (int i = 0; i < 256; ++i) ASSERT_EQ(tokens[i], i);
  EXPECT_EQ(make_tokenizer("bytes", "")->decode(tokens), all);
  EXPECT_EQ(escape_bytes("a\n\t\\\xff"), "a\\n\\t\\\\\\xff");
}

TEST(RunProcess, EndsWhatRunsTooLong) {
  EXPECT_FALSE(run_process({"/bin/sh", "-c", "sleep 600 & sleep 600"}, 0.1).code);
  EXPECT_EQ(run_process({"/bin/sh", "-c", "sleep 600 & exit 7"}, 9).code, 7);
  EXPECT_EQ(run_process({"/bin/sh", "-c", "echo a; echo b >&2"}, 9).output, "a\nb\n");
  EXPECT_THROW(run_process({"/not/there"}, 9), Error);
}

}  // namespace
}  // namespace concertina
