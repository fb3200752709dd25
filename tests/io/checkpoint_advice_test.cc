// What to do about a damaged checkpoint, however its directory is written and long its number is.
#include <filesystem>

#include "tests/io/checkpoint_fixture.h"

namespace concertina {
namespace {

using CheckpointAdvice = CheckpointTest;

TEST_F(CheckpointAdvice, NamesTheNewestOlderCommitThatIsWhole) {
  const std::string whole = save_model(100), damaged = save_model(200);
  save_model(50);
  std::filesystem::remove(damaged + "/" + shard_name(0));
  const std::string newest = save_model(300), advice = whole + " is intact";
  EXPECT_NE(recovery_advice(newest).find(advice), std::string::npos);
  EXPECT_NE(recovery_advice(newest + "/").find(advice), std::string::npos);
}

TEST_F(CheckpointAdvice, GoesByTheStepNotByTheName) {
  const std::string first = save_model(7), last = save_model(99'999'999),
                    longer = save_model(100'000'000);
  EXPECT_NE(recovery_advice(longer).find(last + " is intact"), std::string::npos);
  EXPECT_NE(recovery_advice(last).find(first + " is intact"), std::string::npos);
  EXPECT_NE(recovery_advice(first).find("no older checkpoint is intact"), std::string::npos);
}

TEST_F(CheckpointAdvice, ALostManifestHashIsTheUsersToRestore) {
  const std::string path = save_model(1);
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
