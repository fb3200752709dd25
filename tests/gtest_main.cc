// main() of tests in one process. A program of which every test was skipped says so by its exit
// code: it has shown nothing, and must not count as passed.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  constexpr int kSkipped = 77;  // what Meson, as Automake, takes for a skipped test
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool nothing_ran = all.successful_test_count() == 0 && all.skipped_test_count() > 0;
  return result == 0 && nothing_ran ? kSkipped : result;
}
