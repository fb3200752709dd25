// Tests passes as CUDA graphs, on a device that records, and rejects what a capture does not allow.
#include <gtest/gtest.h>

#include <vector>

#include "core/cuda/backend.h"
#include "core/profile_backend.h"
#include "device_clock.h"
#include "streams.h"
#include "tests/buffer.h"
#include "tests/errors.h"
#include "tests/parallel_comm/allocation_counter.h"

namespace concertina {
namespace {

using Key = std::vector<std::uint64_t>;

class PassGraphsTest : public testing::Test {
 protected:
  explicit PassGraphsTest(std::size_t most = 1024)
      : backend_(cuda::make_cuda_backend({.graphs = most})) {
    workspace_ = buffer_of_bytes(backend_->workspace_bytes());
    backend_->set_workspace(workspace_.data());
  }

  void repeat(const Key& key, const std::function<void()>& issue, const RandomAt& random = {}) {
    backend_->repeat({"h3.mlp", "forward", key, random}, issue);
  }
  /// Runs x = factor x as a pass.
  void scale(const Key& key, float factor) {
    repeat(key, [&] { backend_->run(Axpby{0, x_.view(), factor, x_.view()}); });
  }
  float x() const { return x_.data()[0]; }
  /// Returns the error of a recorded pass that does this.
  std::string refusal(const Key& key, const std::function<void()>& call) {
    repeat(key, [] {});
    try {
      repeat(key, call);
    } catch (const Error& error) {
      expect_has(error.fix(), "run.graphs = false");
      return error.message();
    }
    return "none";
  }

  std::unique_ptr<Backend> backend_;
  Buffer workspace_;
  Buffer x_{std::vector<float>(64, 1)};
};

class TwoGraphsTest : public PassGraphsTest {
 protected:
  TwoGraphsTest() : PassGraphsTest(2) {}
};

TEST_F(PassGraphsTest, ThePassIsDoneEveryTimeAndIssuedTwice) {
  int issued = 0;
  for (int time = 1; time <= 5; ++time) {
    repeat({1}, [&] {
      ++issued;
      for (int i = 0; i < 3; ++i) backend_->run(Axpby{0, x_.view(), 2, x_.view()});
    });
    EXPECT_EQ(x(), static_cast<float>(1 << 3 * time));
  }
  EXPECT_EQ(issued, 2);
  EXPECT_EQ(backend_->pass_counts().issued, 1);
  EXPECT_EQ(backend_->pass_counts().replayed, 4);
  EXPECT_EQ(backend_->pass_counts().recordings, 1);
}

TEST_F(PassGraphsTest, AReplayIsOneCallAndTakesNothingFromTheHeap) {
  const Key key{1};
  const std::function<void()> issue = [&] {
    for (int i = 0; i < 10; ++i) backend_->run(Axpby{0, x_.view(), 2, x_.view()});
  };
  const RepeatedPass pass{"h3.mlp", "forward", key, {}};
  for (int time = 0; time < 2; ++time) backend_->repeat(pass, issue);
  const int calls = emulation::calls_made(), kernels = emulation::kernels_issued();
  const std::size_t before = test::allocations();
  backend_->repeat(pass, issue);
  EXPECT_EQ(test::allocations(), before);
  EXPECT_EQ(emulation::calls_made() - calls, 1);
  EXPECT_EQ(emulation::kernels_issued() - kernels, 10);
}

TEST_F(PassGraphsTest, AnotherKeyIsAnotherPass) {
  float expected = 1;
  for (int time = 0; time < 4; ++time)
    for (const auto& [key, factor] :
         {std::pair<Key, float>{{1, 2}, 2}, {{2, 1}, 3}, {{1, 2, 0}, 5}, {{}, 0.5F}}) {
      scale(key, factor);
      EXPECT_EQ(x(), expected *= factor) << time;
    }
  EXPECT_EQ(backend_->pass_counts().recordings, 4);
}

TEST_F(PassGraphsTest, WithoutKernelsThereIsNoGraph) {
  for (int time = 0; time < 3; ++time) repeat({1}, [] {});
  EXPECT_EQ(backend_->pass_counts().recordings, 0);
  EXPECT_EQ(emulation::graphs_alive(), 0);
}

TEST_F(PassGraphsTest, WhatIsForgottenIsIssuedAgain) {
  for (const auto& forget :
       std::vector<std::function<void()>>{[&] { backend_->forget_passes(); },
                                          [&] { backend_->set_workspace(workspace_.data()); }}) {
    float expected = x();
    for (int time = 0; time < 3; ++time) scale({1}, 2);
    EXPECT_EQ(x(), expected *= 8);
    EXPECT_EQ(emulation::graphs_alive(), 1);
    forget();
    EXPECT_EQ(emulation::graphs_alive(), 0);
    for (int time = 0; time < 3; ++time) scale({1}, 0.5F);
    EXPECT_EQ(x(), expected /= 8);
    forget();
  }
  scale({1}, 2), scale({1}, 2);
  backend_.reset();
  EXPECT_EQ(emulation::graphs_alive(), 0);
}

TEST_F(TwoGraphsTest, OthersAreIssued) {
  float expected = 1;
  for (int time = 0; time < 4; ++time)
    for (const std::uint64_t key : {1, 2, 3}) {
      scale({key}, static_cast<float>(key));
      EXPECT_EQ(x(), expected *= static_cast<float>(key));
    }
  EXPECT_EQ(emulation::graphs_alive(), 2);
  EXPECT_EQ(backend_->pass_counts().issued, 2 + 4);
  EXPECT_EQ(backend_->pass_counts().replayed, 6);
}

TEST_F(PassGraphsTest, MasksAreThoseOfTheirStepAndSample) {
  const Buffer u = Data(3).normal(64), expected(u.size()), got(u.size());
  for (const auto& [step, sample] : {std::pair{1U, 0U}, {1U, 1U}, {2U, 1U}, {7U, 0U}, {7U, 0U}}) {
    const RandomAt at{5, step, sample, 3};
    const DropoutMask mask{0.5, at, 32};
    backend_->run(ApplyDropout{mask, u.view(), {}, expected.view()});
    repeat(
        {1},
        [&] {
          backend_->run(ApplyDropout{mask, u.view(), {}, got.view()});
        },
        at);
    EXPECT_EQ(got.values(), expected.values()) << step << ", " << sample;
  }
  EXPECT_EQ(backend_->pass_counts().replayed, 4);
  const DropoutMask elsewhere{0.5, {5, 1, 0, 4}, 32};
  const auto drop = [&] { backend_->run(ApplyDropout{elsewhere, u.view(), {}, got.view()}); };
  repeat({2}, drop);  // as if it were in another unit
  EXPECT_ANY_THROW(repeat({2}, drop));
  EXPECT_NO_THROW(drop());
}

TEST_F(PassGraphsTest, AProfileLetsThemPassWhileItIsNotActive) {
  Profile profile;
  const auto profiled = make_profile_backend(*backend_, profile);
  const Key key{1};
  for (const auto& [active, repeats, replayed] :
       {std::tuple{true, true, 0}, {false, false, 0}, {false, true, 2}, {true, true, 2}}) {
    profile.active = active, profile.repeats = repeats;
    for (int time = 0; time < 3; ++time)
      profiled->repeat({"h3.mlp", "forward", key, {}}, [&] {
        profiled->run(Axpby{0, x_.view(), 2, x_.view()});
      });
    EXPECT_EQ(profiled->pass_counts().replayed, replayed);
  }
  EXPECT_EQ(x(), 1 << 12);
  EXPECT_EQ(profile.kernels["gradient sums"].calls, 6);
  profiled->forget_passes();
  EXPECT_EQ(emulation::graphs_alive(), 0);
}

TEST_F(PassGraphsTest, WhatACaptureDoesNotAllowIsAnErrorWithTheUnitsName) {
  const auto named = [](const std::string& call) {
    return "CUDA graph for forward of h3.mlp failed: " + call;
  };
  EXPECT_EQ(refusal({1}, [&] { backend_->synchronize(); }).find(named("cudaStreamSynchronize")), 0);
  EXPECT_EQ(refusal({2}, [&] { backend_->memory().allocate(64, "x"); }).find(named("cudaMalloc")),
            0);
  EXPECT_EQ(refusal({3}, [&] { backend_->clock().mark(), backend_->clock().settle(); })
                .find(named("cudaStreamSynchronize")),
            0);
  // A pass that catches and ignores its error.
  EXPECT_EQ(refusal({5}, [&] { EXPECT_ANY_THROW(backend_->synchronize()); })
                .find(named("cudaStreamEndCapture")),
            0);
  EXPECT_EQ(refusal({6}, [] { throw_failure("no such thing", "here"); }), named("no such thing"));
  scale({7}, 2), scale({7}, 2), scale({7}, 2);  // the backend still works
  EXPECT_EQ(x(), 8);
  EXPECT_EQ(emulation::graphs_alive(), 1);
}

}  // namespace
}  // namespace concertina
