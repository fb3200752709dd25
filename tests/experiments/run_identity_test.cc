// A run continues with its initial split, whatever version of the program started it.
#include <gtest/gtest.h>

#include "experiments/config/config_toml.h"
#include "experiments/run/run_identity.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

nlohmann::json identity_of(std::vector<std::string> assignments) {
  RunConfig config;
  for (const std::string& one : assignments) set_config(one, config);
  validate(config);
  return numerics_identity(config, "data");
}

const std::vector<std::string> kLabelled{"data.format=tsv", "data.files=a.tsv"};

nlohmann::json labelled(const std::string& assignment) {
  std::vector<std::string> all = kLabelled;
  all.push_back(assignment);
  return identity_of(all);
}

TEST(Identity, AResumeWithAnotherSplitIsRefused) {
  const nlohmann::json before = identity_of(kLabelled);
  for (const char* const other : {"data.split=end", "data.split_seed=1", "data.test=0.1"}) {
    const std::string key = std::string(other).substr(0, std::string(other).find('='));
    EXPECT_ERROR(check_identity(before, labelled(other), "run"), key + " was ");
  }
  EXPECT_NO_THROW(check_identity(before, labelled("data.most_overlap=1"), "run"));
  EXPECT_NO_THROW(check_identity(before, labelled("data.missing_classes=true"), "run"));
}

TEST(Identity, ACheckpointOfBefore020IsRefused) {
  nlohmann::json before = identity_of(kLabelled);
  for (const char* const key : {"data.split", "model.init_std"}) before.erase(key);
  EXPECT_ERROR(check_identity(before, identity_of(kLabelled), "run"), "before 0.2.0");
}

TEST(Identity, WhereNothingIsDrawnTheDrawDoesNotMatter) {
  for (const std::vector<std::string>& run :
       {std::vector<std::string>{"data.text=a"},
        {"data.format=tsv", "data.files=a.tsv", "data.validation_files=b.tsv"}}) {
    const nlohmann::json now = identity_of(run);
    EXPECT_FALSE(now.contains("data.split"));
    EXPECT_FALSE(now.contains("data.split_seed"));
  }
  EXPECT_FALSE(labelled("data.split=end").contains("data.split_seed"));
}

}  // namespace
}  // namespace concertina
