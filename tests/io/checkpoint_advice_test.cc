// What to do about a damaged checkpoint, however its directory is written and long its number is.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "tests/integration/temporary_directory.h"
#include "tests/io/checkpoint_case.h"

namespace concertina {
namespace {

class CheckpointAdvice : public testing::Test {
 protected:
  std::string save(std::int64_t step) { return commit(root_.path(), step, contents_, 2, random_); }

  TemporaryDirectory root_;
  Random random_{61};
  Contents contents_ = random_contents(random_, 2);
};

TEST_F(CheckpointAdvice, NamesTheNewestOlderCommitThatIsWhole) {
  const std::string whole = save(100), damaged = save(200);
  save(50);
  std::filesystem::remove(damaged + "/" + shard_name(0));
  const std::string newest = save(300), advice = whole + " is intact";
  EXPECT_NE(recovery_advice(newest).find(advice), std::string::npos);
  EXPECT_NE(recovery_advice(newest + "/").find(advice), std::string::npos);
}

TEST_F(CheckpointAdvice, GoesByTheStepNotByTheName) {
  const std::string first = save(7), last = save(99'999'999), longer = save(100'000'000);
  EXPECT_NE(recovery_advice(longer).find(last + " is intact"), std::string::npos);
  EXPECT_NE(recovery_advice(last).find(first + " is intact"), std::string::npos);
  EXPECT_NE(recovery_advice(first).find("no older checkpoint is intact"), std::string::npos);
}

TEST_F(CheckpointAdvice, ALostManifestHashIsTheUsersToRestore) {
  const std::string path = save(1);
  std::filesystem::remove(path + "/" + kManifestHashName);
  try {
    open_manifest(path);
    ADD_FAILURE() << "opened without its hash";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    EXPECT_NE(error.message().find(kManifestHashName), std::string::npos);
    EXPECT_FALSE(error.fix().empty());
  }
}

}  // namespace
}  // namespace concertina
