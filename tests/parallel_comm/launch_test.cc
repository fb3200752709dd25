#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "parallel/comm/mpi_environment.h"
#include "tests/errors.h"
#include "tests/io/refused_call.h"

namespace concertina {
namespace {

/// Returns the size that a launcher gives in `values`, with no other variables, in a child process.
int expected(const std::map<std::string, std::string>& values) {
  return in_child([&] {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE", "SLURM_NTASKS"})
      ::unsetenv(name);
    for (const auto& [name, value] : values) ::setenv(name.c_str(), value.c_str(), 1);
    return expected_world_size();
  });
}

TEST(Launch, ExpectedWorldSize) {
  EXPECT_EQ(expected({}), 0);
  EXPECT_EQ(expected({{"OMPI_COMM_WORLD_SIZE", "8"}}), 8);
  EXPECT_EQ(expected({{"SLURM_STEP_NUM_TASKS", "4"}}), 4);
  EXPECT_EQ(expected({{"PMI_SIZE", "3"}}), 3);
  EXPECT_EQ(expected({{"OMPI_COMM_WORLD_SIZE", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}}), 8);
  EXPECT_EQ(expected({{"SLURM_NTASKS", "8"}}),
            0);  // also set without a launcher
  for (const char* wrong : {"", "x", "4x", "0", "-2", "99999999999"})
    EXPECT_EQ(expected({{"OMPI_COMM_WORLD_SIZE", wrong}}), 0) << wrong;
}

TEST(Launch, TheWorldMustBeWhatTheLauncherWasAskedFor) {
  check_launch({}, 1);
  check_launch(LaunchRequest{4, "OMPI_COMM_WORLD_SIZE"}, 4);
  for (const int ranks : {1, 2, 8}) {
    const Error error = input_error([&] {
      check_launch(LaunchRequest{4, "SLURM_STEP_NUM_TASKS"}, ranks);
    });
    expect_has(error.message(), "4");
    expect_has(error.where(), "SLURM_STEP_NUM_TASKS=4");
    EXPECT_FALSE(error.fix().empty());
  }
}

TEST(Launch, LibraryTextsNeedNoMpiStart) {
  EXPECT_FALSE(mpi_library().empty());
  EXPECT_EQ(mpi_library().find('\n'), std::string::npos);
  EXPECT_FALSE(mpi_cuda_aware().empty());
}

}  // namespace
}  // namespace concertina
