// Full disks, limits, lost permissions, kill -9: existing commits survive, and errors leave nothing
// behind.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "io/file.h"
#include "tests/io/checkpoint_fixture.h"
#include "tests/io/refused_call.h"

namespace concertina {
namespace {

namespace stdfs = std::filesystem;

enum Outcome { kSaved = 10, kCleanError = 11, kOtherError = 12, kNotPossible = 13 };

class CrashTest : public CheckpointTest {
 protected:
  /// Saves; an Error must contain `reason` and the place, and leave nothing of the failed shard.
  /// Like a real caller, abandons a failed checkpoint.
  Outcome try_save(const std::string& where, std::int64_t step, std::string_view reason) {
    std::string partial;
    std::vector<ShardRecord> records;
    try {
      partial = begin_checkpoint(where, step);
      for (const auto& pieces : cut(model_, 2, random_))
        records.push_back(write_shard(partial, records.size(), pieces));
      write_manifest(partial, records, {});
      return kSaved;
    } catch (const Error& error) {
      const bool clean = contains(error.what(), reason) && error.code() == Exit::failure &&
                         !error.where().empty() &&
                         !stdfs::exists(partial + "/" + shard_name(records.size()));
      if (!clean) std::fprintf(stderr, "%s\n", error.what());
      if (!partial.empty()) abandon_checkpoint(partial);
      return clean ? kCleanError : kOtherError;
    }
  }
};

// libhdf5 would crash for some of these limits (EFBIG in its own close), so try all: coarsely over
// the shards, finely where the HDF5 structure is written.
TEST_F(CrashTest, FileSizeLimits) {
  const std::string before = save_model(1);
  int saved = 0, refused = 0;
  for (std::uint64_t limit = 0; limit < 700 << 10; limit += limit < 8192 ? 512 : 9973) {
    const int outcome = in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit bytes{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &bytes);
      return try_save(checkpoints(), 2, "File too large");
    });
    ASSERT_TRUE(outcome == kSaved || outcome == kCleanError) << outcome << ", limit " << limit;
    ++(outcome == kSaved ? saved : refused);
    ASSERT_EQ(verify(before), std::vector<std::string>{});
    ASSERT_EQ(newest_commit(checkpoints())->step, saved > 0 ? 2 : 1);
    ASSERT_EQ(verify(newest_commit(checkpoints())->path), std::vector<std::string>{});
    ASSERT_EQ(difference(newest_commit(checkpoints())->path, model_), "");
  }
  EXPECT_GT(saved, 0);
  EXPECT_GT(refused, 10);
}

// A real full disk: a small tmpfs in the child's own mount namespace.
TEST_F(CrashTest, FullDisk) {
  int refused = 0;
  make_directories(path("disk"));
  for (int kib = 16; kib <= 1024; kib += kib < 300 ? 20 : 100) {
    const int outcome = in_child([&] {
      const std::string disk = path("disk"), size = "size=" + std::to_string(kib + 420) + "k";
      if (!mount_tmpfs(disk, size.c_str())) return kNotPossible;
      if (try_save(disk, 1, "No space left") != kSaved) return kOtherError;
      const Outcome second = try_save(disk, 2, "No space left");
      const auto newest = newest_commit(disk);
      const bool good = newest && newest->step == (second == kSaved ? 2 : 1) &&
                        verify(newest->path).empty() && list_commits(disk).size() >= 1;
      return good ? second : kOtherError;
    });
    if (outcome == kNotPossible) GTEST_SKIP() << "no permission to mount";
    ASSERT_TRUE(outcome == kSaved || outcome == kCleanError) << outcome << ", " << kib << " KiB";
    refused += outcome == kCleanError;
  }
  EXPECT_GT(refused, 3);
}

// ext2, NFS before 4.2, 9p and many FUSE file systems lack fallocate(2); in some sandboxes, no file
// can be locked.
TEST_F(CrashTest, AFileSystemThatCannotReserveSpaceHoldsCheckpointsAsWell) {
  for (const auto& [call, code] : {std::pair{SYS_fallocate, EOPNOTSUPP},
                                   {SYS_fallocate, ENOSYS},
                                   {SYS_fallocate, EINVAL},
                                   {SYS_flock, ENOLCK},
                                   {SYS_flock, EBADF}}) {
    const int outcome = in_child([&] {
      if (!refuse_call(call, code)) return kNotPossible;
      if (try_save(checkpoints(), code, "") != kSaved) return kOtherError;
      return difference(open_newest(checkpoints())->path, model_).empty() ? kSaved : kOtherError;
    });
    ASSERT_NE(outcome, kNotPossible) << "no seccomp filter here";
    EXPECT_EQ(outcome, kSaved) << "call " << call << ", errno " << code;
    EXPECT_EQ(verify(save_model(code)), std::vector<std::string>{});
  }
}

TEST_F(CrashTest, KillAtAnyMomentLeavesAWholeNewestCommit) {
  save_model(1);
  std::int64_t committed = 1;
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      // As on NFS, which cannot exchange two directories atomically.
      if (i % 2 == 1 && !refuse_call(SYS_renameat2, EINVAL)) ::_exit(2);
      for (std::int64_t step = committed;; ++step) {  // also over the newest itself
        if (try_save(checkpoints(), step, "") != kSaved) ::_exit(1);
        prune(checkpoints(), 2);
      }
    }
    ::usleep(static_cast<useconds_t>(draw(random_, 0, 40000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    recover_commits(checkpoints());
    const auto newest = newest_commit(checkpoints());
    ASSERT_TRUE(newest.has_value());
    ASSERT_GE(newest->step, committed);
    committed = newest->step;
    for (const Commit& commit : list_commits(checkpoints()))  // including those being pruned
      ASSERT_EQ(verify(commit.path), std::vector<std::string>{});
  }
  begin_checkpoint(checkpoints(), committed + 1);  // removes what was left
  prune(checkpoints(), 1);
  EXPECT_EQ(std::distance(stdfs::directory_iterator(checkpoints()), {}), 2);
}

// Without an atomic exchange of directories (NFS), a kill may happen between two renames.
TEST_F(CrashTest, ACommitThatWasAboutToBeReplacedComesBack) {
  const std::string first = save_model(1);
  const int saved = in_child([&] {
    if (!refuse_call(SYS_renameat2, EINVAL)) return kNotPossible;
    return try_save(checkpoints(), 1, "");
  });
  ASSERT_EQ(saved, kSaved);
  EXPECT_EQ(std::distance(stdfs::directory_iterator(checkpoints()), {}), 1);
  stdfs::rename(first, first + ".replaced");
  stdfs::create_directory(first + ".partial");
  begin_checkpoint(checkpoints(), 2);
  EXPECT_EQ(verify(first), std::vector<std::string>{});
  // The new commit is complete and in place: the old one is removed.
  stdfs::copy(first, first + ".replaced");
  recover_commits(checkpoints());
  EXPECT_FALSE(stdfs::exists(first + ".replaced"));
  EXPECT_EQ(difference(first, model_), "");
}

TEST_F(CrashTest, NothingBeforeTheRenameIsACommit) {
  const std::string before = save_model(1), after = save_model(2);
  // Complete, but not renamed yet.
  stdfs::rename(after, after + ".partial");
  EXPECT_EQ(newest_commit(checkpoints())->path, before);
  // Shards without a manifest.
  stdfs::remove(after + ".partial/manifest.json");
  EXPECT_EQ(open_newest(checkpoints())->path, before);
}

TEST_F(CrashTest, NoPlaceForADirectoryAndTakenShard) {
  spill(path("file"), "text");
  for (const std::string& place :
       {path("file"), path("file/checkpoints"), std::string("/proc/none")})
    EXPECT_ERROR(begin_checkpoint(place, 1), place);
  for (const std::string& place : {path("file"), path("missing")})
    EXPECT_ERROR(write_shard(place, 0, {}), place);
  EXPECT_EQ(slurp(path("file")), "text");
  const std::string partial = begin_checkpoint(checkpoints(), 1);
  write_shard(partial, 0, {});
  EXPECT_ERROR(write_shard(partial, 0, {}), "File exists");
  EXPECT_TRUE(stdfs::exists(partial + "/shard-00000.h5"));
  spill(partial + "/shard-00001.h5", "somebody's");
  EXPECT_ERROR(write_shard(partial, 1, {}), "File exists");
  EXPECT_EQ(slurp(partial + "/shard-00001.h5"), "somebody's");
}

TEST_F(CrashTest, DirectoryWithoutPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const std::string first = save_model(1);
  stdfs::permissions(checkpoints(), stdfs::perms(0500));
  EXPECT_ERROR(begin_checkpoint(checkpoints(), 2), checkpoints());
  EXPECT_EQ(verify(first), std::vector<std::string>{});
  stdfs::permissions(checkpoints(), stdfs::perms(0700));
}

TEST_F(CrashTest, AbandonLeavesNothing) {
  const std::string partial = begin_checkpoint(checkpoints(), 1);
  write_shards(partial, cut(model_, 2, random_));
  abandon_checkpoint(partial);
  EXPECT_TRUE(stdfs::is_empty(checkpoints()));
}

TEST_F(CrashTest, AFailedShardGivesItsSpaceBack) {
  const std::string partial = begin_checkpoint(checkpoints(), 1);
  const std::vector<float> data(4);
  const std::vector<TensorPiece> clash = {{"a", {4}, 0, 4, {{"w", data.data()}}},
                                          {"a/w.0", {4}, 0, 4, {{"w", data.data()}}}};
  EXPECT_ERROR(write_shard(partial, 0, clash), "H5Dcreate2");
  EXPECT_TRUE(stdfs::is_empty(partial));
}

}  // namespace
}  // namespace concertina
