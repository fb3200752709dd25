// Linear maps and attention.
#include <fmt/format.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "tests/core/kernels/cases.h"
#include "tests/oracle/products.h"

namespace concertina {
namespace {

/// Runs two maps as in an MLP: `up` [I,O] with a GELU feeds `down` [O,I]. Weights may be stored
/// transposed. Covers every epilogue and both directions.
Outputs run_linear(Backend& backend, Data& data, const LinearShape& up_shape) {
  using Kind = Epilogue::Kind;
  const auto [rows, in, out, transposed, compute, products, infers] = up_shape;
  PackedMap up(backend, up_shape),
      down(backend, {rows, out, in, transposed, compute, products, infers});
  // Saves the operand of GELU's slope exactly (not in fp8): after an fp8 product, the slope's error
  // would be larger than the product's own.
  PackedMap exact(backend, {rows, in, out, transposed, compute});
  const Workspace workspace(backend);
  const Buffer x = data.normal(rows * in, 1, 0, compute),
               dz = data.normal(rows * in, 1, 0, compute);
  const Buffer w_up = data.normal(in * out), w_down = data.normal(in * out);
  const Buffer b_up = data.normal(out), b_down = data.normal(in);
  up.pack(w_up);
  down.pack(w_down);
  exact.pack(w_up);

  std::vector<Buffer> aux;  // for the activations below
  for (int i = 0; i < 5; ++i) aux.emplace_back(rows * out, compute);
  const auto activated = [&](const PackedMap& map, Kind kind, const Buffer& slope) {
    return map.forward(x, b_up.view(), {kind, slope.view()});
  };
  const Buffer plain = up.forward(x, b_up.view()), unbiased = up.forward(x, {});
  const Buffer g = activated(up, Kind::gelu, aux[0]);
  activated(exact, Kind::gelu, aux[1]);
  const Buffer erf_g = activated(exact, Kind::gelu_erf, aux[2]),
               silu_g = activated(exact, Kind::silu, aux[3]),
               relu_g = activated(exact, Kind::relu, aux[4]);
  const Buffer z = down.forward(g, b_down.view(), {Kind::residual, x.view()}),
               unbiased_sum = down.forward(g, {}, {Kind::residual, x.view()});
  const Buffer dg = down.backward(dz), du = down.backward(dz, {Kind::gelu, aux[1].view()}),
               erf_du = down.backward(dz, {Kind::gelu_erf, aux[2].view()}),
               silu_du = down.backward(dz, {Kind::silu, aux[3].view()}), dx = up.backward(dg),
               dx_skip = up.backward(dg, {Kind::residual, x.view()});
  const Buffer du_apart(dg.size(), compute), du_in_place(dg.values(), compute);
  backend.run(ActivationInput{Kind::gelu, dg.view(), aux[1].view(), du_apart.view()});
  backend.run(ActivationInput{Kind::gelu, du_in_place.view(), aux[1].view(), du_in_place.view()});

  const Buffer dw(w_up.size()), db(b_up.size()), dw_alone(w_up.size()), db_alone(b_up.size());
  const Buffer dw_sum = data.normal(in * out), db_sum = data.normal(out);
  up.weight(x, dg, dw.view(), db.view(), false);
  up.weight(x, dg, dw_alone.view(), {}, false);
  up.weight(x, dg, {}, db_alone.view(), false);
  up.weight(x, dg, dw_sum.view(), db_sum.view(), true);
  backend.synchronize();
  EXPECT_EQ(du_apart.values(), du_in_place.values()) << "dx may be dy";

  // g is rounded, u may be, and so are partial sums of z, so errors are relative to the terms.
  const double bias = largest(b_up), terms = std::max(largest(g), bias) * largest(w_down);
  return {output("y", plain, bias),  // x W may be close to -b
          output("y without bias", unbiased),
          output("gelu", g, bias),
          output("gelu by erf", erf_g, bias),
          output("dx through gelu by erf", erf_du),
          output("silu", silu_g, bias),
          output("dx through silu", silu_du),
          output("relu", relu_g, bias),  // its slope has a step; see tests/models
          output("residual", z, terms + largest(b_down) + largest(x)),
          output("dx", dg),
          output("dx through gelu", du),
          output("dx of up", dx),
          output("gelu's gradient alone", du_apart),
          output("residual without bias", unbiased_sum, terms),
          output("dx and a residual", dx_skip),
          output("dweight", dw),
          output("dbias", db),
          output("dweight without dbias", dw_alone),
          output("dbias without dweight", db_alone),
          output("dweight accumulated", dw_sum),
          output("dbias accumulated", db_sum)};
}

/// A `padded` shape has sequence lengths of 1, all, and between; a shape with dropout has a mask.
Outputs run_attention(Backend& backend, Data& data, const AttentionShape& shape) {
  const auto attention = backend.attention(shape);
  const Workspace workspace(backend);
  const std::int64_t rows = shape.samples * shape.tokens;
  const Buffer qkv = data.normal(rows * shape.qkv_width(), 1, 0, shape.compute);
  const Buffer dy = data.normal(rows * shape.width(), 1, 0, shape.compute);
  const Buffer y(dy.size(), shape.compute), dqkv(qkv.size(), shape.compute);
  const Buffer lse(static_cast<std::size_t>(rows * shape.heads));
  const auto tokens = static_cast<std::int32_t>(shape.tokens);
  const Buffer drawn = data.integers(shape.samples, 1, tokens);
  if (shape.samples > 2) drawn.view().i32()[0] = 1;
  if (shape.samples > 1) drawn.view().i32()[1] = tokens;
  const View lengths = shape.padded ? drawn.view() : View{};
  DropoutMask mask;
  if (shape.drops)
    mask = {0.3, {std::uint64_t(data.size(1, 9999)) << 20, 11, 5, 3}, shape.mask_elements()};
  backend.run(AttentionForward{*attention, qkv.view(), lengths, y.view(), lse.view(), mask});
  backend.run(AttentionBackward{*attention, dy.view(), qkv.view(), lengths, y.view(), lse.view(),
                                dqkv.view(), mask});
  backend.synchronize();
  return {output("y", y), output("lse", lse), output("dqkv", dqkv)};
}

/// The next tokens of samples with different numbers of tokens in the cache.
Outputs run_cached_attention(Backend& backend, Data& data, const AttentionShape& shape) {
  const auto attention = backend.attention(shape);
  const Workspace workspace(backend);
  const std::int64_t rows = shape.samples * shape.tokens;
  const Buffer qkv = data.normal(rows * shape.qkv_width(), 1, 0, shape.compute);
  const Buffer cache = data.normal(shape.cache_elements(), 1, 0, shape.compute);
  const Buffer y(static_cast<std::size_t>(rows * shape.width()), shape.compute);
  const Buffer starts(static_cast<std::size_t>(rows), DType::i32);
  for (std::int64_t s = 0; s < shape.samples; ++s)
    std::fill_n(starts.view().i32() + s * shape.tokens, shape.tokens,
                -static_cast<std::int32_t>(data.size(0, shape.capacity - shape.tokens)));
  backend.run(AttentionForward{.attention = *attention,
                               .qkv = qkv.view(),
                               .y = y.view(),
                               .lse = {},
                               .starts = starts.view(),
                               .cache = cache.view()});
  backend.synchronize();
  return {output("y", y), output("cache", cache)};
}

/// tf32 has 10 mantissa bits and tensor cores truncate the rest: 2^-10 per factor, for two products
/// in a row. Half a unit in the last place is 2^-4 in E4M3 and 2^-3 in E5M2.
double tolerance(const LinearShape& shape) {
  switch (shape.products) {
    case Products::tf32:
      return 5e-3;
    case Products::fp8:
      return 0.15;
    case Products::as_stored:
      break;
  }
  return tolerance(shape.compute);
}

}  // namespace

void add_product_cases(CaseRound& round) {
  Data& data = round.data;
  const DType compute = round.compute();
  const auto linear = [&](const LinearShape& shape) {
    KernelCase& added = round.add(fmt::format("linear {}x{}x{}{}", shape.rows, shape.in, shape.out,
                                              shape.transposed ? " transposed" : ""),
                                  run_linear, shape);
    added.tolerance = tolerance(shape);
  };
  const auto attention = [&](const AttentionShape& shape) {
    round.add(fmt::format("attention samples {} tokens {} heads {} head_dim {} kv_heads {}{}{}{}",
                          shape.samples, shape.tokens, shape.heads, shape.head_dim, shape.kv(),
                          shape.causal ? "" : " not causal", shape.padded ? " padded" : "",
                          shape.drops ? " dropping" : ""),
              run_attention, shape);
  };
  const Products products = round.precision.products;
  LinearShape shape{odd_size(data, 200),
                    odd_size(data, 130),
                    odd_size(data, 300),
                    round.number % 2 == 1,
                    compute,
                    products};
  linear(shape);
  if (products == Products::fp8) {  // fp8 products need such sizes
    for (std::int64_t* size : {&shape.rows, &shape.in, &shape.out}) *size = (*size + 15) / 16 * 16;
    linear(shape);
  }
  // More rows, columns and keys than an implementation may handle in one product.
  for (const bool transposed : {false, true})
    if (round.number == 0) linear({1100, 40, 400, transposed, compute, products});
  if (products != Products::as_stored) return;
  attention({data.size(1, 3), odd_size(data, 130), data.size(1, 5),
             data.pick<std::int64_t>({1, 8, 24, 64, 80}), compute});
  AttentionShape masked{3, data.pick<std::int64_t>({1, 33, 70, data.size(2, 100)}), 4,
                        data.pick<std::int64_t>({5, 16, 64, 80}), compute};
  masked.kv_heads = data.pick<std::int64_t>({1, 2, 4});
  masked.causal = round.number % 2 == 0, masked.padded = round.number % 4 < 2;
  attention(masked);
  masked.drops = true;
  attention(masked);
  AttentionShape cached{
      3, data.pick<std::int64_t>({1, 5}), 4, masked.head_dim, compute, masked.kv_heads};
  cached.capacity = cached.tokens + data.pick<std::int64_t>({0, 1, 100});
  round.add(fmt::format("cached attention tokens {} of {} head_dim {} kv_heads {}", cached.tokens,
                        cached.capacity, cached.head_dim, cached.kv()),
            run_cached_attention, cached);
  if (round.number != 0) return;
  attention({1, 700, 2, 16, compute});
  attention({1, 530, 2, 8, compute, 1, false, true});
  attention({1, 700, 2, 16, compute, 1, true, false, true});
}

namespace oracle {
namespace {

double dot(const Values& a, const Values& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// tests/golden compares the oracle's other gradients with PyTorch's through models, but no model
/// there has attention dropout. Padding, the last 2 of 4 tokens in the second of two samples, is
/// masked only as keys.
TEST(OracleTest, AttentionGradientsAreCentralDifferences) {
  Data data(11);
  const std::int32_t lengths[] = {4, 2};
  const auto draw = [&](Index count) { return values_of(data.normal(count).view()); };
  for (const bool causal : {true, false})
    for (const bool padded : {true, false})
      for (const Index kv_heads : {0, 1, 2, 4}) {
        const AttentionShape s{2, 4, 4, 3, DType::f32, kv_heads, causal, padded};
        const DropoutMask mask{kv_heads == 1 ? 0 : 0.3, {}, s.mask_elements()};
        Values qkv = draw(8 * s.qkv_width()), y(8 * 12), lse(8 * 4), dqkv(qkv.size()), expected;
        const Values dy = draw(8 * 12);
        const std::int32_t* seen = padded ? lengths : nullptr;
        attention_backward(s, dy, qkv, seen, dqkv, mask);
        for (double& value : qkv) {
          constexpr double kStep = 1e-5;
          const double kept = value;
          double loss[2];
          for (const int side : {0, 1}) {
            value = kept + (side == 0 ? kStep : -kStep);
            attention(s, qkv, seen, y, lse, mask);
            loss[side] = dot(y, dy);
          }
          value = kept;
          expected.push_back((loss[0] - loss[1]) / (2 * kStep));
        }
        EXPECT_LE(relative_error(dqkv, expected), 1e-8)
            << causal << padded << " heads of keys: " << kv_heads;
      }
}

}  // namespace
}  // namespace oracle
}  // namespace concertina
