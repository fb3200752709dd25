// main() of the tests that run on several MPI ranks. Rank 0 prints the failures of all ranks.
// Invariant: no test hangs: a rank that is silent for CONCERTINA_TEST_HANG_SECONDS (60) prints its
// rank and the test, and the job ends.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"
#include "parallel/comm/mpi_environment.h"
#include "parallel/comm/watchdog.h"
#include "tests/mpi_test.h"

namespace concertina::test {
namespace {

using namespace std::chrono_literals;

Communicator* the_world = nullptr;

Watchdog::Seconds hang_limit() {
  const char* text = std::getenv("CONCERTINA_TEST_HANG_SECONDS");
  return Watchdog::Seconds(text == nullptr ? 60.0 : std::atof(text));
}

/// Collects this rank's failures, and sends all failures to rank 0 when a test ends.
class Harness : public ::testing::EmptyTestEventListener {
 public:
  explicit Harness(Communicator& world)
      : comm_(world.split(0, world.rank())),
        watchdog_(world.rank(), hang_limit(), [this](const std::string&) { give_up(); }) {}

  void OnTestStart(const ::testing::TestInfo& test) override {
    name_ = std::string(test.test_suite_name()) + "." + test.name();
    running_ = "inside " + name_;
    finished_ = "finished " + name_ + ", waits for ranks that have not";
    failures_.clear();
    watchdog_.at(running_.c_str());
  }

  void OnTestPartResult(const ::testing::TestPartResult& part) override {
    if (!part.failed()) return;
    const char* file = part.file_name() == nullptr ? "unknown file" : part.file_name();
    failures_ +=
        std::string(file) + ":" + std::to_string(part.line_number()) + "\n" + part.message() + "\n";
  }

  void OnTestEnd(const ::testing::TestInfo&) override {
    watchdog_.at(finished_.c_str());
    const std::vector<std::string> all = gather(failures_);
    for (int r = 1; comm_->rank() == 0 && r < comm_->size(); ++r)
      if (!all[r].empty()) ADD_FAILURE() << "on rank " << r << ":\n" << all[r];
    watchdog_.at("between tests");
  }

  /// Returns the worst result of any rank, on every rank.
  int agree(int result) {
    int worst = 0;
    for (const std::string& text : gather(result == 0 ? "" : "failed"))
      if (!text.empty()) worst = 1;
    return worst;
  }

 private:
  std::vector<std::string> gather(const std::string& mine) {
    std::vector<std::size_t> sizes(comm_->size());
    std::vector<Bytes> size_views, text_views;
    for (std::size_t& size : sizes)
      size_views.push_back(std::as_writable_bytes(std::span(&size, 1)));
    const std::size_t own = mine.size();
    comm_->all_gather(std::as_bytes(std::span(&own, 1)), size_views).wait();
    std::vector<std::string> texts;
    for (std::size_t size : sizes) texts.emplace_back(size, '\0');
    for (std::string& text : texts) text_views.push_back(std::as_writable_bytes(std::span(text)));
    comm_->all_gather(std::as_bytes(std::span(mine)), text_views).wait();
    return texts;
  }

  [[noreturn]] void give_up() {
    // Often one rank failed and the others wait for it, so print why it failed.
    if (!failures_.empty()) log::error("{} had failed here:\n{}", name_, failures_);
    std::this_thread::sleep_for(1s);  // let the other ranks report themselves too
    abort_job(1);
  }

  std::unique_ptr<Communicator> comm_;
  std::string name_, running_, finished_, failures_;
  Watchdog watchdog_;
};

int run_tests(Communicator& all) {
  the_world = &all;
  log::init(the_world->rank(), the_world->size(), "info", true);
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (the_world->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  // End events reach listeners in reverse order, so failures are collected before the printer runs.
  const auto harness = std::make_unique<Harness>(*the_world);
  listeners.Append(harness.get());
  const int result = harness->agree(RUN_ALL_TESTS());
  listeners.Release(harness.get());
  return result;
}

}  // namespace

Communicator& world() {
  return *the_world;
}

}  // namespace concertina::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  concertina::MpiEnvironment mpi;
  try {
    return concertina::test::run_tests(mpi.world());
  } catch (const std::exception& error) {
    concertina::log::error("{}", error.what());
    concertina::abort_job(1);
  }
}
