// Damaged and hostile checkpoints: every change is an error or harmless, never different numbers.
#include <fstream>

#include "io/file.h"
#include "io/sha256.h"
#include "tests/io/checkpoint_fixture.h"

namespace concertina {
namespace {

using nlohmann::json;
namespace stdfs = std::filesystem;

/// Flips one bit of a file, and restores it in the destructor.
class Flip {
 public:
  Flip(const std::string& path, std::uint64_t byte, int bit)
      : file_(path, std::ios::in | std::ios::out | std::ios::binary), byte_(byte), bit_(bit) {
    flip();
  }
  ~Flip() { flip(); }
  Flip(const Flip&) = delete;
  Flip& operator=(const Flip&) = delete;

 private:
  void flip() {
    char value = 0;
    file_.seekg(static_cast<std::streamoff>(byte_)).get(value);
    value = static_cast<char>(value ^ (1 << bit_));
    file_.seekp(static_cast<std::streamoff>(byte_)).put(value).flush();
  }
  std::fstream file_;
  std::uint64_t byte_;
  int bit_;
};

class DamageTest : public CheckpointTest {
 protected:
  DamageTest() : commit_(save_model(2)) {}

  /// Reading either fails with an Error or gives the right numbers.
  ::testing::AssertionResult never_wrong() {
    try {
      if (difference(commit_, model_).empty()) return ::testing::AssertionSuccess();
    } catch (const Error&) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "other numbers were read without an error";
  }

  /// Writes a manifest with `text` and the matching hash.
  void forge(const std::string& text) {
    spill(commit_ + "/" + kManifestName, text);
    spill(commit_ + "/" + kManifestHashName, manifest_hash_line(sha256_hex(text)));
  }

  std::string commit_;
};

TEST_F(DamageTest, NoFlippedBitIsSilent) {
  std::vector<std::string> files;
  for (const auto& entry : stdfs::directory_iterator(commit_)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 6U);  // 3 shards, model.h5, manifest, its hash
  int in_tensors = 0;
  for (int i = 0; i < 600; ++i) {
    const std::string& file = files[i % files.size()];
    const std::uint64_t byte = draw(random_, 0, stdfs::file_size(file) - 1);
    const Flip flip(file, byte, static_cast<int>(draw(random_, 0, 7)));
    const std::vector<std::string> problems = verify(commit_);
    ASSERT_FALSE(problems.empty()) << file << " byte " << byte;
    ASSERT_TRUE(never_wrong()) << file << " byte " << byte;
    if (contains(problems[0], "elements")) {
      ++in_tensors;
      expect_has(problems[0], stdfs::path(file).filename().string());
      EXPECT_ERROR(difference(commit_, model_), "SHA-256");
    }
    if (contains(file, "manifest")) {
      EXPECT_ERROR(open_manifest(commit_), "manifest.json");
    }
  }
  EXPECT_GT(in_tensors, 100);
  EXPECT_EQ(verify(commit_), std::vector<std::string>{});
}

TEST_F(DamageTest, WhatWasSoundOnceIsHashedAgain) {
  CheckpointReader reader(commit_);
  for (const ShardRecord& shard : open_manifest(commit_).shards)
    for (const StoredPiece& piece : shard.pieces) {
      const StoredPart& part = piece.parts.front();
      std::vector<float> values(piece.count);
      reader.read(piece.tensor, part.name, piece.offset, values);
      const Flip flip(commit_ + "/" + shard.file, part.at, 3);
      EXPECT_ERROR(reader.read(piece.tensor, part.name, piece.offset, values), "SHA-256");
    }
}

TEST_F(DamageTest, EveryTruncationAndLossIsNamed) {
  for (const std::string name :
       {"shard-00000.h5", "shard-00002.h5", "manifest.json", "manifest.sha256"}) {
    const std::string file = commit_ + "/" + name, copy = path("copy");
    stdfs::copy_file(file, copy, stdfs::copy_options::overwrite_existing);
    for (const std::uint64_t bytes : {std::uint64_t{0}, stdfs::file_size(copy) - 1}) {
      stdfs::resize_file(file, bytes);
      EXPECT_ERROR(open_manifest(commit_), name.substr(0, 8));
    }
    stdfs::remove(file);
    EXPECT_ERROR(open_manifest(commit_), name);
    stdfs::copy_file(copy, file);
    EXPECT_EQ(difference(commit_, model_), "");
  }
  stdfs::remove(commit_ + "/model.h5");
  EXPECT_EQ(difference(commit_, model_), "");
  ASSERT_EQ(verify(commit_).size(), 1U);
  expect_has(verify(commit_)[0], "model.h5");
}

TEST_F(DamageTest, SwappedSplicedAndForeignShards) {
  // Two shards of equal size, so sizes cannot reveal the swap.
  const TestModel pair = {random_tensor("a", {50}, {"weight"}, random_),
                          random_tensor("b", {50}, {"weight"}, random_)};
  const std::string commit =
      save(checkpoints(), 10, {{piece(pair[0], 0, 50)}, {piece(pair[1], 0, 50)}});
  const std::string first = commit + "/shard-00000.h5", second = commit + "/shard-00001.h5";
  ASSERT_EQ(stdfs::file_size(first), stdfs::file_size(second));
  stdfs::copy_file(first, path("old"));
  stdfs::rename(second, path("second"));
  stdfs::rename(first, second);
  stdfs::rename(path("second"), first);
  EXPECT_ERROR(difference(commit, pair), "SHA-256");
  EXPECT_GE(verify(commit).size(), 2U);
  // The first shard in place of both.
  stdfs::copy_file(path("old"), first, stdfs::copy_options::overwrite_existing);
  EXPECT_ERROR(difference(commit, pair), "'b' is damaged");
  // Another HDF5 file, a text file, a directory.
  stdfs::copy_file(commit_ + "/model.h5", second, stdfs::copy_options::overwrite_existing);
  EXPECT_ERROR(open_manifest(commit), "shard-00001.h5 is damaged");
  spill(second, std::string(stdfs::file_size(first), 'x'));
  EXPECT_ERROR(difference(commit, pair), "'b' is damaged");
  stdfs::remove(second);
  make_directories(second);
  EXPECT_ERROR(open_manifest(commit), "not a regular file");
}

TEST_F(DamageTest, WhatIsNoCheckpoint) {
  EXPECT_ERROR(open_manifest(root_.path()), "not a checkpoint");
  EXPECT_ERROR(open_manifest(path("absent")), "not a checkpoint");
  for (const std::string text :
       {"", "null", "[]", "{}", "{\"format\":1}", "{\"format\":\"other\"}", "\xff\xfe",
        "{\"a\":", "{\"format\":\"concertina-checkpoint\",\"version\":2}"}) {
    forge(text);
    EXPECT_ERROR(open_manifest(commit_), "manifest is invalid");
  }
  forge(std::string(100000, '['));
  EXPECT_ERROR(open_manifest(commit_), "manifest is invalid");
}

// Copying or printing a deeply nested document would overflow the stack.
TEST_F(DamageTest, MetadataIsAnObjectOfModestDepth) {
  json manifest = json::parse(slurp(commit_ + "/" + kManifestName));
  manifest["metadata"] = "HERE";
  const auto with_metadata = [&](const std::string& text) {
    std::string forged = manifest.dump();
    return forged.replace(forged.find("\"HERE\""), 6, text);
  };
  std::string lists = "1";
  for (int i = 0; i < 50; ++i) lists = "[" + lists + "]";
  forge(with_metadata("{\"a\": " + lists + ", \"b\": \"[[\\\"[[\"}"));
  EXPECT_NO_THROW(open_manifest(commit_));
  for (const std::string& text :
       {std::string("5"), std::string("\"text\""), std::string("[]"),
        "{\"a\":" + std::string(300000, '[') + std::string(300000, ']') + "}"}) {
    forge(with_metadata(text));
    EXPECT_ERROR(open_manifest(commit_), "manifest is invalid");
  }
}

/// Adds pointers to all leaves of a document.
void add_leaves(const json& value, const json::json_pointer& at,
                std::vector<json::json_pointer>& leaves) {
  if (!value.is_structured()) leaves.push_back(at);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) add_leaves(value[i], at / i, leaves);
  if (value.is_object())
    for (const auto& [key, child] : value.items()) add_leaves(child, at / key, leaves);
}

TEST_F(DamageTest, HostileManifestsWithGoodHashes) {
  const json good = json::parse(slurp(commit_ + "/" + kManifestName));
  const std::vector<json> hostile = {nullptr,
                                     true,
                                     -1,
                                     0,
                                     1,
                                     4,
                                     1.5,
                                     1e300,
                                     "",
                                     "../../../../etc/passwd",
                                     "/etc/passwd",
                                     "a\0b",
                                     std::uint64_t{1} << 62,
                                     ~std::uint64_t{0},
                                     std::uint64_t{1} << 63,
                                     (std::uint64_t{1} << 62) / 4 + 1,
                                     std::numeric_limits<std::int64_t>::min(),
                                     json::array(),
                                     json::object(),
                                     json::array({1, 2}),
                                     std::string(64, '0')};
  std::vector<json::json_pointer> leaves;
  add_leaves(good, json::json_pointer(), leaves);
  ASSERT_GT(leaves.size(), 100U);
  for (int i = 0; i < 600; ++i) {
    const auto& leaf = leaves[draw(random_, 0, std::ssize(leaves) - 1)];
    const json& value = hostile[draw(random_, 0, std::ssize(hostile) - 1)];
    json bad = good;
    bad[leaf] = value;
    forge(bad.dump());
    ASSERT_TRUE(never_wrong()) << leaf.to_string() << " = " << value;
    verify(commit_);
  }
  for (const auto& leaf : leaves) {  // also with a key or an item missing
    json bad = good;
    bad[leaf.parent_pointer()].is_object() ? (void)bad[leaf.parent_pointer()].erase(leaf.back())
                                           : bad[leaf.parent_pointer()].erase(0U);
    forge(bad.dump());
    ASSERT_TRUE(never_wrong()) << leaf.to_string();
  }
}

// The size given in a manifest must not determine memory allocation.
TEST_F(DamageTest, AnEndlessViewIsNamed) {
  const std::string view = commit_ + "/model.h5";
  json manifest = json::parse(slurp(commit_ + "/" + kManifestName));
  manifest["view"]["bytes"] = std::int64_t{1} << 40;
  forge(manifest.dump());
  stdfs::resize_file(view, std::uintmax_t{1} << 40);
  const std::vector<std::string> problems = verify(commit_);
  ASSERT_EQ(problems.size(), 1U);
  expect_has(problems[0], view + ": the file has");
}

TEST_F(DamageTest, TheErrorNamesAnOlderGoodCommit) {
  const std::string middle = save_model(5), newest = save_model(8);
  stdfs::resize_file(newest + "/manifest.json", 10);
  EXPECT_ERROR(open_newest(checkpoints()), middle + " is intact");
  stdfs::remove(middle + "/shard-00001.h5");
  EXPECT_ERROR(open_newest(checkpoints()), commit_ + " is intact");
  expect_has(recovery_advice(newest + "/"), commit_ + " is intact");
  { std::ofstream(commit_ + "/shard-00000.h5", std::ios::app) << "x"; }
  EXPECT_ERROR(open_newest(checkpoints()), "no older checkpoint is intact");
  // Sorted by step, not by name.
  const std::string last = save_model(99'999'999), longer = save_model(100'000'000);
  expect_has(recovery_advice(longer), last + " is intact");
  expect_has(recovery_advice(last), "no older checkpoint is intact");
}

TEST_F(DamageTest, DamageFoundByTheReaderNamesAnOlderGoodCommitToo) {
  const std::string newest = save_model(8);
  const Manifest manifest = open_manifest(newest);
  const Flip flip(newest + "/shard-00000.h5", manifest.shards[0].pieces[0].parts[0].at, 0);
  EXPECT_ERROR(difference(newest, model_), commit_ + " is intact");
}

TEST_F(DamageTest, ARenamedCommitIsNotTakenForAnotherStep) {
  const std::string other = save_model(5), renamed = checkpoints() + "/step-00000099";
  const auto refused = [&](const std::string& commit, const std::string& right) {
    EXPECT_ERROR(CheckpointReader{commit}, "rename the directory to " + right);
    ASSERT_EQ(verify(commit).size(), 1U);
    expect_has(verify(commit)[0], "does not match its step");
    expect_has(recovery_advice(commit), right);
  };
  stdfs::rename(commit_, renamed);
  EXPECT_ERROR(open_newest(checkpoints()), "does not match its step 2");
  for (const std::string& as : {renamed, renamed + "/", renamed + "/../step-00000099"})
    refused(as, "step-00000002");
  // Two commits with swapped names.
  stdfs::rename(other, commit_);
  stdfs::rename(renamed, other);
  refused(commit_, "step-00000005");
  refused(other, "step-00000002");
  // A copy is valid under a name without a step.
  stdfs::copy(other, path("best"));
  EXPECT_EQ(difference(path("best"), model_), "");
}

}  // namespace
}  // namespace concertina
