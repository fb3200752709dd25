// A run's directory: one owner at a time, and nothing that is no run is ever written to.
#include "io/run_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

Exit code_of(const std::string& root, const std::string& name) {
  try {
    RunDirectory run(root, name);
  } catch (const Error& error) {
    return error.code();
  }
  return Exit::ok;
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
  EXPECT_EQ(run.read_config(), "a = 1\n");
  for (const std::string& file : {run.metrics(), run.events(), run.result(), run.trace()})
    EXPECT_EQ(std::filesystem::path(file).parent_path(), run.path());
  for (const auto& entry : std::filesystem::directory_iterator(run.path()))
    EXPECT_NE(entry.path().extension(), ".tmp") << "a probe was left";
}

TEST(RunDirectory, HasOneOwnerAtATime) {
  const TemporaryDirectory root;
  {
    RunDirectory run(root.path(), "mine");
    run.write_config("");
    EXPECT_EQ(code_of(root.path(), "mine"), Exit::bad_input);
    EXPECT_EQ(code_of(root.path(), "other"), Exit::ok);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(static_cast<int>(code_of(root.path(), "mine")));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Exit::bad_input));
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
  { RunDirectory run(root.path(), "run"); }  // made checkpoints/, never wrote its config
  spill(root.path() + "/run/config.toml.tmp", "half");
  EXPECT_EQ(code_of(root.path(), "run"), Exit::ok);
}

TEST(RunDirectory, NamesArePlainFileNames) {
  const TemporaryDirectory root;
  for (const char* name : {"", ".", "..", "a/b", "/etc", "a b", "a\n"})
    EXPECT_EQ(code_of(root.path(), name), Exit::bad_input) << name;
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
  EXPECT_EQ(code_of(root.path(), "größe-大"), Exit::ok);
}

TEST(RunDirectory, APathWhereNoneCanBeIsBadInput) {
  const TemporaryDirectory root;
  spill(root.path() + "/file", "text");
  EXPECT_EQ(code_of(root.path() + "/file/runs", "run"), Exit::bad_input);
  EXPECT_EQ(code_of("/proc/runs", "run"), Exit::bad_input);
  EXPECT_EQ(code_of(root.path(), std::string(300, 'x')), Exit::bad_input);
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
