// Dropout, gradient sums and norms.
#include <fmt/format.h>

#include <vector>

#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/rates.h"

namespace concertina {
namespace {

/// At this share, one element is just kept, so any difference in the mask shows.
Outputs run_dropout(Backend& backend, Data& data, std::int64_t samples,
                    std::int64_t sample_elements, DType compute) {
  const auto random = [&] { return static_cast<std::uint32_t>(data.size(0, 1 << 30)) * 4 + 1; };
  DropoutMask mask{
      0, {std::uint64_t{random()} << 21, random(), random(), random()}, sample_elements};
  const auto words =
      Rng(mask.at.seed, Purpose::dropout).words(mask.at.step, mask.at.sample, mask.at.unit, 0);
  mask.share = words[0] * 0x1p-32;
  const std::int64_t count = samples * sample_elements;
  const Buffer u = data.normal(count, 1, 0, compute), skip = data.normal(count, 1, 0, compute);
  const Buffer y(u.size(), compute), added(u.size(), compute), whole(u.size(), compute);
  const Buffer in_place(u.values(), compute);
  backend.run(ApplyDropout{mask, u.view(), {}, y.view()});
  backend.run(ApplyDropout{mask, u.view(), skip.view(), added.view()});
  backend.run(ApplyDropout{mask, in_place.view(), skip.view(), in_place.view()});
  mask.share = 0;
  backend.run(ApplyDropout{mask, u.view(), {}, whole.view()});
  backend.synchronize();
  EXPECT_NE(y.values()[0], 0) << "an element at the threshold is kept";
  EXPECT_EQ(in_place.values(), added.values()) << "y may be u";
  EXPECT_EQ(whole.values(), u.values());
  return {output("y", y), output("y with residual", added)};
}

Outputs run_elementwise(Backend& backend, Data& data, std::int64_t count) {
  const Buffer x = data.normal(count), y = data.normal(count), cleared = data.normal(count);
  backend.run(Axpby{1.25F, x.view(), -0.5F, y.view()});
  backend.run(Axpby{-2, x.view(), 0, cleared.view()});

  const auto block = static_cast<std::size_t>(data.size(1, 300));
  std::vector<double> sums((x.size() + block - 1) / block, static_cast<double>(kPoison));
  backend.run(SumSquares{x.view(), block, sums});

  backend.synchronize();
  return {output("axpby", y),
          output("axpby over", cleared),
          {"sum_squares", {sums.begin(), sums.end()}, 0}};
}

}  // namespace

void add_elementwise_cases(CaseRound& round) {
  Data& data = round.data;
  const auto dropout = [&](std::int64_t samples, std::int64_t elements) {
    round.add(fmt::format("dropout {}x{}", samples, elements), run_dropout, samples, elements);
  };
  dropout(data.size(1, 4), odd_size(data, 60) * odd_size(data, 300));
  if (round.number == 0) dropout(2, 16420);  // a sample of more than one piece
  const std::int64_t count = odd_size(data, 10000);
  if (round.compute() == DType::f32)
    round.add(fmt::format("elementwise {}", count), run_elementwise, count);
}

void dropout_rates(KernelRates& rates, DType compute) {
  const RateSizes& sizes = rates.sizes();
  RateMemory& memory = rates.memory();
  const std::int64_t count = sizes.rows() * sizes.width;
  const View x = memory.take(count, compute), skip = memory.take(count, compute),
             y = memory.take(count, compute);
  rates.fused(
      "dropout + residual", 3 * static_cast<double>(x.bytes()),
      ApplyDropout{
          {.share = 0.1, .at = {}, .sample_elements = sizes.tokens * sizes.width}, x, skip, y});
}

void flat_rates(KernelRates& rates) {
  const RateSizes& sizes = rates.sizes();
  RateMemory& memory = rates.memory();
  const View x = memory.take(sizes.flat, DType::f32), y = memory.take(sizes.flat, DType::f32);
  const auto bytes = static_cast<double>(x.bytes());
  std::vector<double> sums(static_cast<std::size_t>(sizes.flat) / 4096);
  rates.fused("axpby", 3 * bytes, Axpby{1, x, 1e-3F, y});
  rates.fused("sum of squares", bytes, SumSquares{x, 4096, sums});
}

}  // namespace concertina
