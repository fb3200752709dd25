// A run's directory has one owner at a time; other directories are never written to.
#include "io/checkpoint/run_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/io/checkpoint_fixture.h"
#include "tests/io/refused_call.h"

namespace concertina {
namespace {

Exit code_of(const std::string& root, const std::string& name,
             const std::string& checkpoints = {}) {
  try {
    RunDirectory run(root, name, checkpoints);
  } catch (const Error& error) {
    return error.code();
  }
  return Exit::ok;
}

/// Returns the exit code of a second process that starts while the first one has the run.
int code_beside(const std::string& root, const std::string& name,
                const std::string& checkpoints = {}) {
  return in_child([&] { return static_cast<int>(code_of(root, name, checkpoints)); });
}

/// Emulates a file system without locks.
bool refuse_locks(int code = EOPNOTSUPP) {
  return refuse_call(SYS_flock, code) && refuse_call(SYS_fcntl, code, F_OFD_SETLK);
}

TEST(RunDirectory, BecomesARunWithItsConfig) {
  const TemporaryDirectory root;
  {
    RunDirectory run(root.path() + "/new/runs", "first");
    EXPECT_FALSE(run.existing());
    EXPECT_FALSE(RunDirectory::exists(root.path() + "/new/runs", "first"));
    EXPECT_TRUE(std::filesystem::is_directory(run.checkpoints()));
    run.write_config("a = 1\n");
    EXPECT_TRUE(RunDirectory::exists(root.path() + "/new/runs", "first"));
  }
  RunDirectory run(root.path() + "/new/runs", "first");
  EXPECT_TRUE(run.existing());
  EXPECT_EQ(slurp(run.path() + "/config.toml"), "a = 1\n");
  for (const auto& entry : std::filesystem::directory_iterator(run.path()))
    EXPECT_NE(entry.path().extension(), ".tmp") << "a probe was left";
}

TEST(RunDirectory, ALaunchThatIsRefusedLeavesNothing) {
  const TemporaryDirectory root;
  spill(root.path() + "/file", "text");
  const auto left = [&] {
    return std::distance(std::filesystem::recursive_directory_iterator(root.path()), {});
  };
  { RunDirectory run(root.path(), "first"); }
  EXPECT_EQ(left(), 1);
  EXPECT_EQ(code_of(root.path(), "first", root.path() + "/file/in"), Exit::bad_input);
  EXPECT_EQ(left(), 1);
  std::filesystem::create_directories(root.path() + "/empty");  // an existing folder stays
  { RunDirectory run(root.path(), "empty"); }
  EXPECT_TRUE(std::filesystem::exists(root.path() + "/empty"));
}

TEST(RunDirectory, HasOneOwnerAtATime) {
  const TemporaryDirectory root;
  {
    RunDirectory run(root.path(), "mine");
    run.write_config("");
    EXPECT_EQ(code_of(root.path(), "mine"), Exit::bad_input);
    EXPECT_EQ(code_of(root.path(), "other"), Exit::ok);
    EXPECT_EQ(code_beside(root.path(), "mine"), static_cast<int>(Exit::bad_input));
  }
  EXPECT_EQ(code_of(root.path(), "mine"), Exit::ok);
}

TEST(RunDirectory, ADirectoryWithOtherThingsIsLeftAlone) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root.path() + "/photos/2020");
  spill(root.path() + "/photos/2020/cat.jpg", "meow");
  EXPECT_EQ(code_of(root.path(), "photos"), Exit::bad_input);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root.path() + "/photos"), {}), 1);
  spill(root.path() + "/file", "text");
  EXPECT_NE(code_of(root.path(), "file"), Exit::ok);
  EXPECT_EQ(slurp(root.path() + "/file"), "text");
}

TEST(RunDirectory, AnInterruptedStartIsNoObstacle) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root.path() + "/run/checkpoints");
  spill(root.path() + "/run/run.lock", "");
  for (const std::string name :
       {"config.toml.tmp", "metrics.jsonl", "events.jsonl", "run.id.tmp", "launches.jsonl",
        "checkpoints/owner.json.tmp", "tensorboard/events.out.tfevents.1"}) {
    std::filesystem::create_directories(root.path() + "/run/tensorboard");
    spill(root.path() + "/run/" + name, "half");
    EXPECT_EQ(code_of(root.path(), "run"), Exit::ok) << name;
  }
  std::filesystem::create_directories(root.path() + "/before/checkpoints");  // by older versions
  EXPECT_EQ(code_of(root.path(), "before"), Exit::ok);
}

// A file system may lack flock, and also the locks of fcntl.
TEST(RunDirectory, HasOneOwnerAlsoWhereLocksAreRefused) {
  for (const bool fcntl_too : {false, true}) {
    const TemporaryDirectory root;
    const int outcome = in_child([&] {
      if (!(fcntl_too ? refuse_locks() : refuse_call(SYS_flock, ENOLCK))) return 100;
      const RunDirectory run(root.path(), "mine");
      if (code_beside(root.path(), "other") != 0) return 101;
      return code_beside(root.path(), "mine");
    });
    ASSERT_NE(outcome, 100) << "no seccomp filter here";
    EXPECT_EQ(outcome, static_cast<int>(Exit::bad_input)) << fcntl_too;
  }
}

class LockFile : public ::testing::Test {
 protected:
  /// Returns the exit code of a start on a file system without locks.
  int start() const {
    return in_child([&] {
      refuse_locks();
      return static_cast<int>(code_of(root_.path(), "run"));
    });
  }
  /// Writes a lock file of `process`; returns the code of a start, which leaves one.
  int start_beside(const ProcessId& process) const {
    std::filesystem::create_directories(root_.path() + "/run");
    spill(held_, nlohmann::json{{"host", process.host},
                                {"boot", process.boot},
                                {"pid", process.pid},
                                {"started", process.started}}
                     .dump());
    return start();
  }

  TemporaryDirectory root_;
  std::string held_ = root_.path() + "/run/run.lock.held";
};

TEST_F(LockFile, OfAProcessThatHasEndedIsTakenOver) {
  EXPECT_EQ(start(), 0);
  EXPECT_FALSE(std::filesystem::exists(held_)) << "not removed at the end";
  // A process that was killed: first a zombie, then gone.
  const pid_t child = ::fork();
  if (child == 0) {
    refuse_locks(ENOLCK);
    const RunDirectory run(root_.path(), "run");
    ::kill(::getpid(), SIGKILL);
  }
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const std::string left = slurp(held_);
  EXPECT_EQ(start(), 0);
  ::waitpid(child, nullptr, 0);
  spill(held_, left);
  EXPECT_EQ(start(), 0);
  ProcessId other = this_process();
  other.started += "0";  // another process with this number
  EXPECT_EQ(start_beside(other), 0);
  other = this_process();
  other.boot = "an earlier one";
  EXPECT_EQ(start_beside(other), 0);
}

TEST_F(LockFile, OfAProcessThatMayBeAliveIsRespected) {
  EXPECT_EQ(start_beside(this_process()), 2);
  ProcessId other = this_process();
  other.host += "-other";
  EXPECT_EQ(start_beside(other), 2) << "it is unknown here what runs there";
  spill(held_, "");  // its creator is just about to write it
  EXPECT_EQ(start(), 2);
  EXPECT_TRUE(std::filesystem::exists(held_));
}

/// Runs with the same checkpoint.dir.
class SharedCheckpoints : public ::testing::Test {
 protected:
  /// Creates a run `name` with a commit.
  void train(const std::string& name, std::int64_t step) {
    RunDirectory run(root_.path(), name, shared_);
    run.write_config("");
    Random random(1);
    const TestModel model = random_model(2, random);
    save(shared_, step, cut(model, 1, random));
  }
  std::string start(const std::string& name) const {
    return thrown_by([&] { RunDirectory run(root_.path(), name, shared_); }).what();
  }

  TemporaryDirectory root_;
  std::string shared_ = root_.path() + "/shared{}";  // braces mean nothing in a path
};

TEST_F(SharedCheckpoints, ServeOneRunAtATime) {
  const RunDirectory run(root_.path(), "a", shared_);
  EXPECT_EQ(code_of(root_.path(), "b", shared_), Exit::bad_input);
  EXPECT_EQ(code_beside(root_.path(), "b", shared_), static_cast<int>(Exit::bad_input));
  expect_has(start("b"), "using this checkpoint.dir");
}

TEST_F(SharedCheckpoints, OfAnotherRunAreRefused) {
  { RunDirectory run(root_.path(), "typo", shared_); }  // never committed
  train("a", 1);
  train("a", 2);
  const std::string error = start("b");
  for (const std::string part : {"another run, 'a'", "/shared", "owner.json"})
    expect_has(error, part);
  EXPECT_EQ(list_commits(shared_).size(), 2U);
  std::filesystem::remove(shared_ + "/owner.json");  // as suggested, or by older versions
  train("b", 3);
  expect_has(start("a"), "another run, 'b'");
}

TEST_F(SharedCheckpoints, FollowARunThatIsMovedButNotACopy) {
  train("a", 1);
  std::filesystem::rename(root_.path() + "/a", root_.path() + "/moved");
  train("moved", 2);
  std::filesystem::copy(root_.path() + "/moved", root_.path() + "/copy",
                        std::filesystem::copy_options::recursive);
  expect_has(start("copy"), "a copy");
  train("moved", 3);
}

TEST(RunDirectory, NamesArePlainAndPathsArePossible) {
  const TemporaryDirectory root;
  for (const std::string& name :
       std::vector<std::string>{"", ".", "..", "a/b", "/etc", "a b", "a\n", std::string(300, 'x')})
    EXPECT_EQ(code_of(root.path(), name), Exit::bad_input) << name;
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
  EXPECT_EQ(code_of(root.path(), "größe-大"), Exit::ok);
  spill(root.path() + "/file", "text");
  EXPECT_EQ(code_of(root.path() + "/file/runs", "run"), Exit::bad_input);
  EXPECT_EQ(code_of("/proc/runs", "run"), Exit::bad_input);
  EXPECT_EQ(code_of(root.path(), "run", root.path() + "/run"), Exit::ok);
}

TEST(RunDirectory, CheckpointsMayLieElsewhere) {
  const TemporaryDirectory root;
  RunDirectory run(root.path(), "run", root.path() + "/scratch/deep");
  EXPECT_EQ(run.checkpoints(), root.path() + "/scratch/deep");
  EXPECT_TRUE(std::filesystem::is_directory(run.checkpoints()));
  EXPECT_FALSE(std::filesystem::exists(run.path() + "/checkpoints"));
}

}  // namespace
}  // namespace concertina
