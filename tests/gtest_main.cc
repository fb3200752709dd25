// main() of tests in one process. If every test of a program was skipped, its exit code says so:
// such a run has tested nothing and must not count as passed.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  constexpr int kSkipped = 77;  // means a skipped test for Meson and Automake
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool nothing_ran = all.successful_test_count() == 0 && all.skipped_test_count() > 0;
  return result == 0 && nothing_ran ? kSkipped : result;
}
