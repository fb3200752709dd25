// Snapshots in memory: reading gives what was written, for the newest step that all ranks have;
// damaged or missing snapshots are never used.
#include "io/checkpoint/snapshot_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "core/error.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// A model of two tensors on two ranks: each has half of the first one, and rank 1 has the second.
class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest() { open(); }
  ~SnapshotTest() override {
    files_.clear();
    remove_snapshots(prefix_);
  }

  /// Opens the files as the ranks of a new launch do.
  void open() {
    files_.clear();
    for (int rank = 0; rank < 2; ++rank)
      files_.push_back(std::make_unique<SnapshotFile>(run_, rank));
    ++launch_;
  }
  void write(int rank, std::int64_t step) {
    std::vector<float> half(500), all(7);
    for (std::size_t i = 0; i < half.size(); ++i) half[i] = value(step, rank * 500 + i);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = value(step, 5000 + i);
    std::vector<TensorPiece> pieces{
        {"a", {10, 100}, static_cast<std::size_t>(rank) * 500, 500, {{"weight", half.data()}}}};
    if (rank == 1) pieces.push_back({"b", {7}, 0, 7, {{"weight", all.data()}}});
    SnapshotFile& file = *files_[static_cast<std::size_t>(rank)];
    file.copy({.launch = launch_, .rank = rank, .world = 2, .step = step}, {{"step", step}},
              pieces);
    file.seal();
  }
  void write_all(std::int64_t step) { write(0, step), write(1, step); }

  static float value(std::int64_t step, std::size_t i) {
    return static_cast<float>(step) + static_cast<float>(i) / 8192;
  }
  std::int64_t newest() const {
    const auto whole = newest_whole(snapshot_parts(run_));
    return whole ? whole->commit.manifest.step : -1;
  }
  /// Reads all of the newest snapshot; throws if it is damaged.
  void expect_whole(std::int64_t step) const {
    auto whole = newest_whole(snapshot_parts(run_));
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->commit.manifest.step, step);
    EXPECT_EQ(whole->commit.manifest.metadata.at("step"), step);
    CheckpointReader reader(std::move(whole->commit));
    std::vector<float> a(1000), b(7);
    reader.read("a", "weight", 0, a);
    reader.read("b", "weight", 0, b);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], value(step, i)) << i;
    for (std::size_t i = 0; i < b.size(); ++i) ASSERT_EQ(b[i], value(step, 5000 + i)) << i;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator("/dev/shm"))
      if (entry.path().string().starts_with(prefix_)) all.push_back(entry.path());
    return all;
  }

  const std::string prefix_ = fmt::format("/dev/shm/concertina-test-{}", ::getpid());
  const SnapshotRun run_{.prefix = prefix_, .key = std::string(64, 'a'), .directory = "/runs/a"};
  std::vector<std::unique_ptr<SnapshotFile>> files_;
  std::uint64_t launch_ = 0;
};

TEST_F(SnapshotTest, TheNewestOfAllRanksIsRead) {
  EXPECT_EQ(newest(), -1);
  for (std::int64_t step = 1; step < 6; ++step) {
    write_all(step);
    expect_whole(step);
  }
  EXPECT_EQ(names().size(), 4U);
}

TEST_F(SnapshotTest, AStepThatARankLacksDoesNotCount) {
  write_all(1);
  write(0, 2);
  expect_whole(1);
  write(1, 2);
  expect_whole(2);
  write(1, 3);
  expect_whole(2);
}

TEST_F(SnapshotTest, ANewLaunchKeepsWhatItGoesOnFrom) {
  write_all(1);
  write_all(2);
  write(0, 3);
  open();  // continues from step 2
  expect_whole(2);
  write(1, 3);  // not the launch of rank 0's step 3
  EXPECT_EQ(newest(), 2);
  write(0, 3);
  expect_whole(3);
}

TEST_F(SnapshotTest, WhatWasBeingWrittenIsNone) {
  write_all(1);
  write_all(2);
  files_.clear();
  fs::rename(prefix_ + ".0.1", prefix_ + ".0.1.partial");
  EXPECT_EQ(newest(), 1);
  open();
  write_all(3);
  expect_whole(3);
}

TEST_F(SnapshotTest, AreRemovedTogether) {
  write_all(1);
  remove_snapshots(prefix_);
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(newest(), -1);
  for (std::int64_t step = 2; step < 5; ++step) {  // there is still room
    write_all(step);
    expect_whole(step);
  }
}

TEST_F(SnapshotTest, DamageIsNeverReadAsAValue) {
  std::mt19937 random(1);
  int refused = 0;
  constexpr int kTurns = 400;
  for (int turn = 0; turn < kTurns; ++turn) {
    open();
    write_all(1);
    write_all(2);
    const std::vector<std::string> all = names();
    const std::string& victim = all[random() % all.size()];
    const auto size = fs::file_size(victim);
    if (turn % 10 == 0) {
      fs::resize_file(victim, random() % size);
    } else if (turn % 10 == 1) {
      fs::remove(victim);
    } else if (turn % 10 == 2) {
      fs::rename(victim, all[random() % all.size()]);
    } else {
      std::fstream file(victim, std::ios::in | std::ios::out | std::ios::binary);
      // In the numbers or in the description at the end: the space between them is unused.
      const auto at = static_cast<std::streamoff>(random() % 2 == 0 ? random() % 2000
                                                                    : size - 1 - random() % 500);
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      file.put(static_cast<char>(byte ^ (1 << random() % 8)));
    }
    // The mapping of a truncated file must not be accessed again.
    files_.clear();
    try {
      const std::int64_t step = newest();
      if (step > 0) expect_whole(step);
      refused += step == 2 ? 0 : 1;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
      ++refused;
    }
    if (HasFailure()) return;
    remove_snapshots(prefix_);
  }
  EXPECT_GT(refused, kTurns / 4);
}

}  // namespace
}  // namespace concertina
