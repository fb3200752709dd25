// Tests the reports of calls that fail in destructors.
#include "core/cuda/base/check.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "tests/errors.h"

namespace concertina {
namespace {

/// Does what the owner of a device resource does in its destructor, on a lost device.
struct Owner {
  ~Owner() { cuda::log_failure(cudaErrorIllegalAddress, "cudaFree"); }
};

class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  void TearDown() override { spdlog::set_default_logger(before_); }

  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(CheckTest, AFailureAtTheEndIsLogged) {
  { const Owner owner; }
  expect_has(text_.str(), "cudaFree failed");
}

TEST_F(CheckTest, OfALostDeviceTheFirstErrorIsTheOnlyOne) {
  const Error error = thrown_by([&] {
    const Owner owner;
    cuda::check(cudaErrorIllegalAddress, "layer norm");
  });
  expect_has(error.message(), "layer norm failed");
  EXPECT_EQ(text_.str(), "");
}

}  // namespace
}  // namespace concertina
