// Attention over packed documents must treat each document as a separate sample.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "tests/core/kernels/cases.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

Buffer int_buffer(const std::vector<std::int32_t>& values) {
  Buffer buffer(values.size(), DType::i32);
  std::ranges::copy(values, buffer.view().i32());
  return buffer;
}

struct AttentionResult {
  std::vector<float> y, lse, dqkv;
};

/// Both passes of one backend over qkv and dy.
class AttentionRun {
 public:
  AttentionRun(Backend& backend, AttentionShape shape)
      : backend_(backend),
        shape_(shape),
        attention_(backend.attention(shape)),
        workspace_(backend) {}
  AttentionResult operator()(View qkv, View dy, View starts, const DropoutMask& mask) {
    const auto rows = static_cast<std::size_t>(shape_.samples * shape_.tokens);
    const Buffer y(rows * static_cast<std::size_t>(shape_.width()), shape_.compute);
    const Buffer lse(rows * static_cast<std::size_t>(shape_.heads), DType::f32);
    const Buffer dqkv(rows * static_cast<std::size_t>(shape_.qkv_width()), shape_.compute);
    backend_.run(AttentionForward{*attention_, qkv, {}, y.view(), lse.view(), mask, starts});
    backend_.run(AttentionBackward{
        *attention_, dy, qkv, {}, y.view(), lse.view(), dqkv.view(), mask, starts});
    backend_.synchronize();
    return {to_floats(y.view()), to_floats(lse.view()), to_floats(dqkv.view())};
  }

 private:
  Backend& backend_;
  AttentionShape shape_;
  std::shared_ptr<Attention> attention_;
  Workspace workspace_;
};

constexpr std::int64_t kTokens = 97;
/// Starts of the documents in two samples: with 1 token, of odd sizes, larger than a tile.
const std::vector<std::vector<std::int64_t>> kBegins{{0, 1, 4, 21, 90, 91}, {0, 33}};

AttentionShape shape_of(std::int64_t kv_heads, DType compute = DType::f32) {
  return {.heads = 4, .head_dim = 12, .compute = compute, .kv_heads = kv_heads};
}

void expect_as_alone(Backend& backend, Backend& alone, AttentionShape shape, double most) {
  shape.samples = 2, shape.tokens = kTokens, shape.packed = true;
  Data data(3);
  const auto rows = static_cast<std::size_t>(2 * kTokens);
  const auto columns = static_cast<std::size_t>(shape.qkv_width()),
             width = static_cast<std::size_t>(shape.width());
  const Buffer qkv = data.normal(static_cast<std::int64_t>(rows * columns), 1, 0, shape.compute),
               dy = data.normal(static_cast<std::int64_t>(rows * width), 1, 0, shape.compute);
  std::vector<std::int32_t> starts;
  for (const auto& begins : kBegins)
    for (std::size_t d = 0; d < begins.size(); ++d)
      starts.resize(
          starts.size() + static_cast<std::size_t>(
                              (d + 1 < begins.size() ? begins[d + 1] : kTokens) - begins[d]),
          static_cast<std::int32_t>(begins[d]));
  const Buffer places = int_buffer(starts);
  AttentionRun packed(backend, shape);
  const AttentionResult all = packed(qkv.view(), dy.view(), places.view(), {});
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t d = 0; d < kBegins[s].size(); ++d) {
      const std::int64_t begin = kBegins[s][d],
                         end = d + 1 < kBegins[s].size() ? kBegins[s][d + 1] : kTokens;
      const std::size_t row = s * kTokens + static_cast<std::size_t>(begin);
      const auto count = static_cast<std::size_t>(end - begin);
      AttentionShape one = shape;
      one.samples = 1, one.tokens = end - begin, one.packed = false;
      AttentionRun run(alone, one);
      const AttentionResult own = run(qkv.view().slice(row * columns, count * columns),
                                      dy.view().slice(row * width, count * width), {}, {});
      const auto same = [&](const std::vector<float>& expected, const std::vector<float>& found,
                            std::size_t at, const char* what) {
        ASSERT_LE(at + expected.size(), found.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          ASSERT_LE(std::abs(expected[i] - found[at + i]), most * (1 + std::abs(expected[i])))
              << what << " " << i << " of document " << d << " of sample " << s;
      };
      same(own.y, all.y, row * width, "y");
      same(own.dqkv, all.dqkv, row * columns, "dqkv");
      for (std::int64_t h = 0; h < shape.heads; ++h)
        same({own.lse.begin() + h * (end - begin), own.lse.begin() + (h + 1) * (end - begin)},
             all.lse,
             static_cast<std::size_t>((static_cast<std::int64_t>(s) * shape.heads + h) * kTokens +
                                      begin),
             "lse");
    }
}

TEST(PackedAttention, ADocumentHasTheBitsOfASampleOfItsOwn) {
  for (const int threads : {1, 2}) {
    const auto backend = make_cpu_backend(threads, ""), alone = make_cpu_backend(1, "");
    for (const std::int64_t kv_heads : {0, 1, 2})
      expect_as_alone(*backend, *alone, shape_of(kv_heads), 0);
  }
}

TEST(PackedAttention, ItIsTheOraclesInFp64) {
  const auto backend = make_cpu_backend(2, ""), oracle = make_oracle_backend();
  expect_as_alone(*backend, *oracle, shape_of(2), 1e-5);
}

TEST(PackedAttention, Bf16IsAsExactAsOfSamples) {
  const auto backend = make_cpu_backend(1, ""), oracle = make_oracle_backend();
  AttentionShape shape{1, 8, 4, 12, DType::bf16};
  shape.packed = true;
  try {
    backend->attention(shape);
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  expect_as_alone(*backend, *oracle, shape_of(0, DType::bf16), 3e-2);
}

TEST(PackedAttention, EachDocumentDropsItsOwnScores) {
  const auto backend = make_cpu_backend(1, "");
  AttentionShape shape{1, 64, 4, 8, DType::f32, 2};
  shape.packed = shape.drops = true;
  Data data(4);
  const auto half = static_cast<std::size_t>(32 * shape.qkv_width());
  const Buffer qkv = data.normal(2 * static_cast<std::int64_t>(half)), dy = data.normal(64 * 32);
  std::copy_n(qkv.data(), half, qkv.data() + half);  // two identical documents
  std::vector<std::int32_t> starts(64);
  std::fill(starts.begin() + 32, starts.end(), 32);
  const Buffer places = int_buffer(starts);
  AttentionRun run(*backend, shape);
  const auto halves_are_equal = [&](double share) {
    const std::vector<float> y =
        run(qkv.view(), dy.view(), places.view(),
            share > 0 ? DropoutMask{share, {1, 2, 3, 4}, shape.mask_elements()} : DropoutMask{})
            .y;
    return std::memcmp(y.data(), y.data() + 32 * 32, 32 * 32 * sizeof(float)) == 0;
  };
  EXPECT_TRUE(halves_are_equal(0));
  EXPECT_FALSE(halves_are_equal(0.5));
}

}  // namespace
}  // namespace concertina
