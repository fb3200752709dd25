// Tests linear maps in fp8. They get the same quantized operands as the oracle, so results differ
// only by rounding. Runs on a GPU with fp8, and on the host with tests/core/cuda_emulation.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/cuda/backend.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "tests/buffer.h"
#include "tests/core/cuda_staged_backend.h"
#include "tests/core/kernels/cases.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

/// Mantissa bits after the first, the exponent of the smallest step, and the largest value.
struct Fp8 {
  int bits, least;
  double most;
};
constexpr Fp8 kE4m3{3, -9, 448}, kE5m2{2, -16, 57344};

/// Returns a tensor after a conversion to fp8 and back: scaled by a power of two into its range,
/// rounded to nearest with ties to even, and scaled back.
Buffer through(const Fp8& format, const Buffer& x) {
  double largest = 0;
  for (const float v : x.values()) largest = std::max(largest, std::abs(static_cast<double>(v)));
  int shift = 0;
  while (largest > 0 && std::ldexp(largest, shift) > format.most) --shift;
  while (largest > 0 && std::ldexp(largest, shift + 1) <= format.most) ++shift;
  std::vector<float> values = x.values();
  for (float& v : values) {
    int exponent = 0;
    const double scaled = std::ldexp(static_cast<double>(v), shift);
    std::frexp(scaled, &exponent);  // in [0.5, 1)
    const int step = std::max(exponent - 1 - format.bits, format.least);
    v = static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(scaled, -step)), step - shift));
  }
  return Buffer(values, x.view().dtype);
}

/// One map: the operands of its products, and what is added to the results.
struct Map {
  LinearShape shape;
  Buffer x, dy, w;
  Buffer bias, skip, old;
};

Map random_map(unsigned seed, const LinearShape& s) {
  Data data(seed);
  const auto spread = [&] { return data.pick<float>({1e-4F, 0.02F, 1, 3e3F}); };
  return {s,
          data.normal(s.rows * s.in, spread(), 0, DType::bf16),
          data.normal(s.rows * s.out, 1e-3F * spread(), 0, DType::bf16),
          data.normal(s.in * s.out, spread()),
          data.normal(s.out),
          data.normal(s.rows * s.out, 1, 0, DType::bf16),
          data.normal(s.in * s.out)};
}

/// Returns `map` with the operands that its fp8 products multiply.
Map quantized(Map map) {
  map.x = through(kE4m3, map.x);
  map.dy = through(kE5m2, map.dy);
  map.w = through(kE4m3, map.w);
  return map;
}

/// Returns y without and with an epilogue, dx, and dweight both alone and accumulated.
std::vector<Buffer> products(Backend& backend, const Map& map, Products how) {
  LinearShape shape = map.shape;
  shape.products = how;
  PackedMap linear(backend, shape);
  const Workspace workspace(backend);
  linear.pack(map.w);
  const Buffer aux(map.dy.size(), DType::bf16), dw(map.w.size()), sum(map.old.values());
  std::vector<Buffer> results;
  results.push_back(linear.forward(map.x, {}));
  results.push_back(
      linear.forward(map.x, map.bias.view(), {Epilogue::Kind::residual, map.skip.view()}));
  results.push_back(linear.forward(map.x, map.bias.view(), {Epilogue::Kind::gelu, aux.view()}));
  results.push_back(linear.backward(map.dy));
  linear.weight(map.x, map.dy, dw.view(), {}, false);
  linear.weight(map.x, map.dy, sum.view(), {}, true);
  backend.synchronize();
  results.emplace_back(dw.values());
  results.emplace_back(sum.values());
  return results;
}

class CudaFp8Test : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no GPU: " << cuda::status();
    try {
      make()->require({DType::bf16, Products::fp8});
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
  }
  static std::unique_ptr<Backend> make() {
    return make_staged_backend(cuda::make_cuda_backend({}));
  }
};

TEST_F(CudaFp8Test, ProductsAreThoseOfTheQuantizedOperands) {
  Data data(1);
  for (unsigned seed = 0; seed < 12; ++seed) {
    const auto size = [&] { return 16 * data.size(1, 14); };
    const Map map = random_map(seed, {size(), size(), size(), seed % 2 == 1, DType::bf16});
    const auto got = products(*make(), map, Products::fp8);
    const auto expected = products(*make_oracle_backend(), quantized(random_map(seed, map.shape)),
                                   Products::as_stored);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_LE(relative_error(got[i].values(), expected[i].values()), 1e-2)
          << map.shape.rows << "x" << map.shape.in << "x" << map.shape.out << ", result " << i;
  }
}

/// Zeros have no largest value to scale by; the inverse of a tiny value can overflow a float.
TEST_F(CudaFp8Test, ZerosAndTheSmallestValuesHaveAScale) {
  for (const float value : {0.0F, 1e-38F, 1e-40F}) {
    Map map = random_map(1, {16, 32, 16, false, DType::bf16});
    map.x = Buffer(std::vector<float>(map.x.size(), value), DType::bf16);
    map.dy = Buffer(std::vector<float>(map.dy.size(), value), DType::bf16);
    for (const Buffer& result : products(*make(), map, Products::fp8))
      for (const float one : result.values()) ASSERT_TRUE(std::isfinite(one)) << value;
  }
}

/// E4M3 has no infinity and a cast saturates, but non-finite values must still show in the result.
TEST_F(CudaFp8Test, WhatIsNotFiniteShowsInTheResult) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    Map map = random_map(2, {32, 16, 48, false, DType::bf16});
    std::vector<float> values = map.x.values();
    values[7 * 16 + 3] = bad;
    map.x = Buffer(values, DType::bf16);
    const auto results = products(*make(), map, Products::fp8);
    const std::vector<float> y = results[0].values(), dw = results[4].values();
    for (std::size_t column = 0; column < 48; ++column) {
      EXPECT_TRUE(std::isnan(y[7 * 48 + column])) << bad;
      EXPECT_TRUE(std::isnan(dw[3 * 48 + column])) << bad;
    }
  }
}

/// A map that fp8 does not support gets the bits of bf16; a supported map gets others.
TEST_F(CudaFp8Test, OtherSizesAreDoneInBf16) {
  for (const auto& [rows, in, out] :
       {std::tuple{16, 32, 48}, {17, 32, 48}, {16, 40, 48}, {16, 32, 8}}) {
    const Map map = random_map(3, {rows, in, out, false, DType::bf16});
    const auto fp8 = products(*make(), map, Products::fp8);
    const auto bf16 = products(*make(), map, Products::as_stored);
    const bool fits = rows % 16 == 0 && in % 16 == 0 && out % 16 == 0;
    EXPECT_EQ(fp8[0].values() == bf16[0].values(), !fits) << rows << "x" << in << "x" << out;
    EXPECT_EQ(fp8[4].values() == bf16[4].values(), !fits) << rows << "x" << in << "x" << out;
  }
}

}  // namespace
}  // namespace concertina
