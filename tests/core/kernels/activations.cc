// Activation functions and rotary embedding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/rates.h"

namespace concertina {
namespace {

Outputs run_gated_silu(Backend& backend, Data& data, std::int64_t rows, std::int64_t width,
                       DType compute) {
  const Buffer u = data.normal(rows * 2 * width, 3, 0, compute);
  const Buffer dy = data.normal(rows * width, 1, 0, compute);
  const Buffer y(dy.size(), compute), du(u.size(), compute), in_u(u.values(), compute);
  backend.run(GatedSilu{u.view(), width, y.view()});
  backend.run(GatedSiluInput{dy.view(), u.view(), width, du.view()});
  backend.run(GatedSiluInput{dy.view(), in_u.view(), width, in_u.view()});
  backend.synchronize();
  EXPECT_EQ(du.values(), in_u.values()) << "du may be u";
  return {output("y", y), output("du", du)};
}

Outputs run_tanh(Backend& backend, Data& data, std::int64_t count, float spread, DType compute) {
  const Buffer x = data.normal(count, spread, 0, compute), dy = data.normal(count, 1, 0, compute);
  const Buffer y(x.size(), compute), dx(x.size(), compute);
  const Buffer in_x(x.values(), compute), in_dy(dy.values(), compute);
  backend.run(Tanh{x.view(), y.view()});
  backend.run(Tanh{in_x.view(), in_x.view()});
  backend.run(TanhInput{dy.view(), y.view(), dx.view()});
  backend.run(TanhInput{in_dy.view(), y.view(), in_dy.view()});
  backend.synchronize();
  EXPECT_EQ(y.values(), in_x.values()) << "y may be x";
  EXPECT_EQ(dx.values(), in_dy.values()) << "dx may be dy";
  return {output("y", y), output("dx", dx)};
}

/// Rotates qkv with fewer heads of k and v than of q; unrotated columns must be unchanged.
Outputs run_rotary(Backend& backend, Data& data, std::int64_t samples, std::int64_t tokens,
                   std::int64_t heads, std::int64_t head_dim, std::int64_t columns, DType compute) {
  const std::int64_t stride = heads * head_dim + data.pick<std::int64_t>({0, head_dim, 3});
  const Buffer x = data.normal(samples * tokens * stride, 1, 0, compute);
  const Buffer table(static_cast<std::size_t>(tokens * columns));
  const Buffer turned(x.values(), compute), back(x.values(), compute);
  const RotarySpec spec{
      .theta = data.pick<double>({1e4, 5e5}),
      .columns = columns,
      .scaling = data.pick<RotarySpec::Scaling>(
          {RotarySpec::Scaling::none, RotarySpec::Scaling::linear, RotarySpec::Scaling::llama3}),
      .factor = 8,
      .original = 20};
  backend.run(RotaryTable{spec, table.view(), tokens});
  backend.run(Rotate{turned.view(), table.view(), stride, heads, head_dim, columns, tokens, false});
  backend.run(Rotate{back.view(), table.view(), stride, heads, head_dim, columns, tokens, true});
  backend.synchronize();
  return {output("table", table), output("x", turned), output("x turned back", back)};
}

}  // namespace

void add_activation_cases(CaseRound& round) {
  Data& data = round.data;
  const std::int64_t rows = odd_size(data, 200), width = odd_size(data, 300);
  round.add(fmt::format("gated_silu {}x{}", rows, width), run_gated_silu, rows, width);
  const auto spread = data.pick<float>({1e-4F, 1, 30});
  round.add(fmt::format("tanh {} spread {}", rows * width, spread), run_tanh, rows * width, spread);
  const std::int64_t samples = data.size(1, 3), tokens = odd_size(data, 60),
                     heads = data.size(1, 5),
                     head_dim = data.pick<std::int64_t>({2, 6, 16, 24, 64, 128}),
                     columns = data.pick<std::int64_t>({2, head_dim / 4 * 2, head_dim});
  round.add(fmt::format("rotary {}x{} heads {} head_dim {} of which {}", samples, tokens, heads,
                        head_dim, std::max<std::int64_t>(columns, 2)),
            run_rotary, samples, tokens, heads, head_dim, std::max<std::int64_t>(columns, 2));
}

void activation_rates(KernelRates& rates, DType compute) {
  const RateSizes& sizes = rates.sizes();
  RateMemory& memory = rates.memory();
  const std::int64_t r = sizes.rows(), c = sizes.width;
  const View u = memory.take(r * 2 * c, compute), du = memory.take(r * 2 * c, compute),
             y = memory.take(r * c, compute), dy = memory.take(r * c, compute);
  const auto bytes = static_cast<double>(y.bytes());
  rates.fused("gated silu", 3 * bytes, GatedSilu{u, c, y});
  rates.fused("gated silu dx", 5 * bytes, GatedSiluInput{dy, u, c, du});
  rates.fused("tanh", 2 * bytes, Tanh{dy, y});
  rates.fused("tanh dx", 3 * bytes, TanhInput{dy, y, dy});
  constexpr std::int64_t kHeadDim = 64;
  const View table = memory.take(sizes.tokens * kHeadDim, DType::f32);
  rates.device().run(RotaryTable{{.theta = 1e4, .columns = kHeadDim}, table, sizes.tokens});
  rates.fused("rotary embedding", 4 * bytes,
              Rotate{u, table, 2 * c, 2 * c / kHeadDim, kHeadDim, kHeadDim, sizes.tokens, false});
}

}  // namespace concertina
