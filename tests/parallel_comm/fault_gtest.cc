// Tests that hang or fail on one rank; fault_test.sh checks how the harness handles them.
#include <gtest/gtest.h>

#include "tests/mpi_test.h"

namespace concertina {
namespace {

TEST(Fault, HangsOnRankOne) {
  std::byte byte{};
  if (test::world().rank() == 1) test::world().irecv(Bytes(&byte, 1), 1).wait();
}

TEST(Fault, FailsOnRankOne) {
  EXPECT_NE(test::world().rank(), 1) << "fails on purpose";
}

TEST(Fault, Passes) {}

}  // namespace
}  // namespace concertina
