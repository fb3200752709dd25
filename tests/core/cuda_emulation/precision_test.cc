// Tests which devices support which precision, and a whole model in each.
#include <gtest/gtest.h>

#include <cmath>

#include "core/cuda/backend.h"
#include "runtime.h"
#include "tests/buffer.h"
#include "tests/errors.h"
#include "tests/models/local_pipeline.h"

namespace concertina {
namespace {

constexpr Precision kFp8(DType::bf16, Products::fp8);

TEST(CudaPrecisionTest, Fp8NeedsComputeCapability89) {
  for (const auto& [major, minor, able] :
       {std::tuple{8, 0, false}, {8, 6, false}, {8, 9, true}, {9, 0, true}, {10, 0, true}}) {
    emulation::set_compute_capability(major, minor);
    const auto backend = cuda::make_cuda_backend({});
    emulation::set_compute_capability(9, 0);
    for (const Precision& precision : kPrecisions)
      if (precision != kFp8 || able) {
        EXPECT_NO_THROW(backend->require(precision));
      }
    if (able) continue;
    const Error error = input_error([&] {
      backend->linear({16, 16, 16, false, kFp8.storage, kFp8.products});
    });
    EXPECT_EQ(error.message(),
              fmt::format("numerics.compute = \"fp8\" needs a GPU of compute capability 8.9 or "
                          "later; GPU 0, emulated, has {}.{}",
                          major, minor));
    EXPECT_EQ(error.fix(), "one of: fp32, tf32, bf16");
  }
}

/// Losses of several microbatches, and their gradients.
struct Result {
  std::vector<double> losses;
  std::vector<std::vector<float>> gradients;
  bool operator==(const Result&) const = default;
};

Result train(const Precision& precision) {
  // fp8 supports every map except the head.
  const auto model = make_model("gpt", {.layers = 2,
                                        .width = 32,
                                        .heads = 4,
                                        .context = 16,
                                        .vocab = 37,
                                        .samples = 2,
                                        .precision = precision});
  const auto backend = cuda::make_cuda_backend({});
  LocalPipeline pipeline(*backend, *model, {0, 6});
  pipeline.initialize(5);
  GradientStore store(pipeline.buckets());
  Data data(9);
  Result result;
  for (int m = 0; m < 2; ++m) {
    const Buffer tokens = data.integers(32, 0, 36), targets = data.integers(32, -1, 36);
    result.losses.push_back(pipeline.train(tokens.view(), targets.view(), 0.01F, m, store));
  }
  for (int b = 0; b < std::ssize(pipeline.buckets()); ++b)
    result.gradients.push_back(store.total(b));
  return result;
}

TEST(CudaPrecisionTest, EachIsNearFp32AndItsOwn) {
  const Result exact = train(DType::f32);
  Result before = exact;
  for (const auto& [precision, tolerance] :
       {std::pair<Precision, double>{DType::bf16, 0.05}, {kFp8, 0.25}}) {
    const Result got = train(precision);
    EXPECT_NE(got, before) << name_of(precision);
    EXPECT_LE(relative_error(got.losses, exact.losses), 5e-3) << name_of(precision);
    for (std::size_t b = 0; b < exact.gradients.size(); ++b)
      EXPECT_LE(relative_error(got.gradients[b], exact.gradients[b]), tolerance)
          << name_of(precision) << ", bucket " << b;
    before = got;
  }
}

}  // namespace
}  // namespace concertina
