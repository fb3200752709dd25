// Writes that fail: one clean error, no half-written file, and the previous commit untouched.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/error.h"
#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "io/checkpoint_shard.h"
#include "tests/integration/temporary_directory.h"
#include "tests/io/checkpoint_case.h"

namespace concertina {
namespace {

enum Ended : int { committed = 0, clean_error = 10, left_a_shard = 11, other = 12 };

/// In the child: a commit of step 2 with files of at most `limit` bytes.
Ended commit_limited(const std::string& root, const Pieces& pieces, rlim_t limit) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit most{limit, limit};
  if (::setrlimit(RLIMIT_FSIZE, &most) != 0) return other;
  const std::string partial = begin_checkpoint(root, 2);
  std::vector<ShardRecord> shards;
  try {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      shards.push_back(write_shard(partial, i, pieces[i]));
    write_manifest(partial, shards, {});
    return committed;
  } catch (const Error& error) {
    if (error.code() != Exit::failure || error.where().empty()) return other;
    if (std::filesystem::exists(partial + "/" + shard_name(shards.size()))) return left_a_shard;
    return clean_error;
  }
}

/// Runs `action` in a child process and returns its exit status, 1000 + signal if one killed it.
template <class Action>
int in_child(Action action) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = other;
    try {
      status = action();
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(CheckpointFailure, AFileSizeLimitIsACleanErrorWhereverItStrikes) {
  Random random(21);
  const TemporaryDirectory root;
  const Contents contents = random_contents(random);
  const std::string first = commit(root.path(), 1, contents, 2, random);
  const Pieces pieces = cut(contents, 3, random);
  int errors = 0, commits = 0;
  for (rlim_t limit = 0; limit < (4 << 20); limit = limit * 3 / 2 + 1000) {
    SCOPED_TRACE(limit);
    const int ended = in_child([&] { return commit_limited(root.path(), pieces, limit); });
    ASSERT_TRUE(ended == committed || ended == clean_error) << ended;
    ++(ended == committed ? commits : errors);
    EXPECT_EQ(verify(first), std::vector<std::string>{});
    EXPECT_EQ(newest_commit(root.path())->step, ended == committed ? 2 : 1);
    if (ended == committed) {
      EXPECT_EQ(difference(newest_commit(root.path())->path, contents), "");
      std::filesystem::remove_all(newest_commit(root.path())->path);
    }
  }
  EXPECT_GT(errors, 3);
  EXPECT_GT(commits, 1);
}

TEST(CheckpointFailure, APathBelowAFileIsAnError) {
  const TemporaryDirectory root;
  spill(root.path() + "/file", "text");
  try {
    begin_checkpoint(root.path() + "/file/checkpoints", 1);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::failure);
    EXPECT_NE(std::string(error.what()).find("/file"), std::string::npos);
    EXPECT_FALSE(error.fix().empty());
  }
  EXPECT_THROW(write_shard(root.path() + "/file", 0, {}), Error);
  EXPECT_THROW(write_shard(root.path() + "/missing", 0, {}), Error);
  EXPECT_EQ(slurp(root.path() + "/file"), "text");
}

TEST(CheckpointFailure, AnUnwritableDirectoryIsAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  Random random(23);
  const TemporaryDirectory root;
  const std::string first = commit(root.path(), 1, random_contents(random), 1, random);
  std::filesystem::permissions(root.path(), std::filesystem::perms(0500));
  EXPECT_THROW(begin_checkpoint(root.path(), 2), Error);
  EXPECT_EQ(verify(first), std::vector<std::string>{});
  std::filesystem::permissions(root.path(), std::filesystem::perms(0700));
}

TEST(CheckpointFailure, AnExistingShardIsNeverOverwritten) {
  const TemporaryDirectory root;
  spill(root.path() + "/" + shard_name(4), "somebody's");
  EXPECT_THROW(write_shard(root.path(), 4, {}), Error);
  EXPECT_EQ(slurp(root.path() + "/" + shard_name(4)), "somebody's");
}

TEST(CheckpointFailure, AbandonLeavesNothing) {
  Random random(25);
  const TemporaryDirectory root;
  const Uncommitted written = write_shards(root.path(), 1, cut(random_contents(random), 2, random));
  abandon_checkpoint(written.partial);
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

}  // namespace
}  // namespace concertina
