// Linear maps and attention.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/differences.h"
#include "tests/oracle/products.h"

namespace concertina {
namespace {

/// Two maps as in an MLP: `up` [I,O] with a GELU after it feeds `down` [O,I], optionally stored
/// transposed. Every epilogue and both directions.
Outputs run_linear(Backend& backend, unsigned seed, const LinearShape& up_shape) {
  Data data(seed);
  const auto [rows, in, out, transposed, compute, products] = up_shape;
  const auto up = backend.linear(up_shape);
  const auto down = backend.linear({rows, out, in, transposed, compute, products});
  // Keeps for GELU's slope what is as exact as its type: of an fp8 product, the slope would show
  // more of the error than it has itself.
  const auto exact_up = backend.linear({rows, in, out, transposed, compute});
  const Workspace workspace(backend);
  const Buffer packed_up = buffer_of_bytes(up->packed_bytes());
  const Buffer packed_down = buffer_of_bytes(down->packed_bytes());
  const Buffer packed_exact = buffer_of_bytes(exact_up->packed_bytes());
  const auto activations = [&](std::int64_t n) { return data.normal(n, 1, 0, compute); };
  const Buffer x = activations(rows * in), dz = activations(rows * in);
  const Buffer w_up = data.normal(in * out), w_down = data.normal(in * out);
  const Buffer b_up = data.normal(out), b_down = data.normal(in);
  backend.run(PackWeights{*up, w_up.view(), packed_up.data()});
  backend.run(PackWeights{*down, w_down.view(), packed_down.data()});
  backend.run(PackWeights{*exact_up, w_up.view(), packed_exact.data()});

  const auto r_in = static_cast<std::size_t>(rows * in),
             r_out = static_cast<std::size_t>(rows * out);
  const Buffer plain(r_out, compute), unbiased(r_out, compute), g(r_out, compute),
      aux(r_out, compute), exact_g(r_out, compute), exact_aux(r_out, compute), z(r_in, compute),
      dg(r_out, compute), du(r_out, compute), dx(r_in, compute);
  backend.run(LinearForward{*up, x.view(), packed_up.data(), b_up.view(), {}, plain.view()});
  backend.run(LinearForward{*up, x.view(), packed_up.data(), {}, {}, unbiased.view()});
  backend.run(LinearForward{
      *up, x.view(), packed_up.data(), b_up.view(), {Epilogue::Kind::gelu, aux.view()}, g.view()});
  backend.run(LinearForward{*exact_up,
                            x.view(),
                            packed_exact.data(),
                            b_up.view(),
                            {Epilogue::Kind::gelu, exact_aux.view()},
                            exact_g.view()});
  const Buffer erf_g(r_out, compute), erf_aux(r_out, compute), erf_du(r_out, compute);
  backend.run(LinearForward{*exact_up,
                            x.view(),
                            packed_exact.data(),
                            b_up.view(),
                            {Epilogue::Kind::gelu_erf, erf_aux.view()},
                            erf_g.view()});
  const Buffer silu_g(r_out, compute), silu_aux(r_out, compute), silu_du(r_out, compute),
      relu_g(r_out, compute), relu_aux(r_out, compute);
  for (const auto& [kind, value, slope] :
       {std::tuple(Epilogue::Kind::silu, silu_g.view(), silu_aux.view()),
        std::tuple(Epilogue::Kind::relu, relu_g.view(), relu_aux.view())})
    backend.run(
        LinearForward{*exact_up, x.view(), packed_exact.data(), b_up.view(), {kind, slope}, value});
  backend.run(LinearForward{*down,
                            g.view(),
                            packed_down.data(),
                            b_down.view(),
                            {Epilogue::Kind::residual, x.view()},
                            z.view()});
  backend.run(LinearInput{*down, dz.view(), packed_down.data(), {}, dg.view()});
  backend.run(LinearInput{
      *down, dz.view(), packed_down.data(), {Epilogue::Kind::gelu, exact_aux.view()}, du.view()});
  backend.run(LinearInput{*down,
                          dz.view(),
                          packed_down.data(),
                          {Epilogue::Kind::gelu_erf, erf_aux.view()},
                          erf_du.view()});
  backend.run(LinearInput{*down,
                          dz.view(),
                          packed_down.data(),
                          {Epilogue::Kind::silu, silu_aux.view()},
                          silu_du.view()});
  backend.run(LinearInput{*up, dg.view(), packed_up.data(), {}, dx.view()});
  const Buffer dx_skip(r_in, compute), du_apart(r_out, compute), unbiased_sum(r_in, compute),
      du_in_place(dg.values(), compute);
  backend.run(LinearForward{*down,
                            g.view(),
                            packed_down.data(),
                            {},
                            {Epilogue::Kind::residual, x.view()},
                            unbiased_sum.view()});
  backend.run(ActivationInput{Epilogue::Kind::gelu, dg.view(), exact_aux.view(), du_apart.view()});
  backend.run(ActivationInput{Epilogue::Kind::gelu, du_in_place.view(), exact_aux.view(),
                              du_in_place.view()});
  backend.run(LinearInput{
      *up, dg.view(), packed_up.data(), {Epilogue::Kind::residual, x.view()}, dx_skip.view()});

  const Buffer dw(w_up.size()), db(b_up.size()), dw_alone(w_up.size()), db_alone(b_up.size());
  const Buffer dw_sum = data.normal(in * out), db_sum = data.normal(out);
  backend.run(LinearWeight{*up, x.view(), dg.view(), dw.view(), db.view(), false});
  backend.run(LinearWeight{*up, x.view(), dg.view(), dw_alone.view(), {}, false});
  backend.run(LinearWeight{*up, x.view(), dg.view(), {}, db_alone.view(), false});
  backend.run(LinearWeight{*up, x.view(), dg.view(), dw_sum.view(), db_sum.view(), true});
  backend.synchronize();
  EXPECT_EQ(du_apart.values(), du_in_place.values()) << "dx may be dy";

  Outputs outputs;
  keep(outputs, "y", plain, largest(b_up));  // x W may be just -b
  keep(outputs, "y without bias", unbiased);
  keep(outputs, "gelu", g, largest(b_up));
  keep(outputs, "gelu by erf", erf_g, largest(b_up));
  keep(outputs, "dx through gelu by erf", erf_du);
  keep(outputs, "silu", silu_g, largest(b_up));
  keep(outputs, "dx through silu", silu_du);
  keep(outputs, "relu", relu_g, largest(b_up));  // its slope has a step: tests/models
  // g is rounded, from an u that may be, and so are the sums on the way to z: errors of its terms.
  const double terms = std::max(largest(g), largest(b_up)) * largest(w_down);
  keep(outputs, "residual", z, terms + largest(b_down) + largest(x));
  keep(outputs, "dx", dg);
  keep(outputs, "dx through gelu", du);
  keep(outputs, "dx of up", dx);
  keep(outputs, "gelu's gradient alone", du_apart);
  keep(outputs, "residual without bias", unbiased_sum, terms);
  keep(outputs, "dx and a residual", dx_skip);
  keep(outputs, "dweight", dw);
  keep(outputs, "dbias", db);
  keep(outputs, "dweight without dbias", dw_alone);
  keep(outputs, "dbias without dweight", db_alone);
  keep(outputs, "dweight accumulated", dw_sum);
  keep(outputs, "dbias accumulated", db_sum);
  return outputs;
}

/// A shape that is `padded` has lengths of 1, all, and between; one that drops has a mask.
Outputs run_attention(Backend& backend, unsigned seed, const AttentionShape& shape) {
  Data data(seed);
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
  if (shape.drops) mask = {0.3, {seed * 7919ULL << 20, 11, 5, 3}, shape.mask_elements()};
  backend.run(AttentionForward{*attention, qkv.view(), lengths, y.view(), lse.view(), mask});
  backend.run(AttentionBackward{*attention, dy.view(), qkv.view(), lengths, y.view(), lse.view(),
                                dqkv.view(), mask});
  backend.synchronize();
  Outputs outputs;
  keep(outputs, "y", y);
  keep(outputs, "lse", lse);
  keep(outputs, "dqkv", dqkv);
  return outputs;
}

/// tf32 has 10 bits, and tensor cores cut off the others: 2^-10 a factor, of two products in a row.
/// Half a unit in the last place is 2^-4 in E4M3 and 2^-3 in E5M2.
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
  if (products == Products::fp8) {  // of such sizes only is a product done in fp8
    for (std::int64_t* size : {&shape.rows, &shape.in, &shape.out}) *size = (*size + 15) / 16 * 16;
    linear(shape);
  }
  // More rows, columns and keys than one product of an implementation may take.
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
  if (round.number != 0) return;
  attention({1, 700, 2, 16, compute});
  attention({1, 530, 2, 8, compute, 1, false, true});
  attention({1, 700, 2, 16, compute, 1, true, false, true});
}

namespace oracle {
namespace {

void expect_slope(double (*function)(double), double (*slope)(double)) {
  Values u = draw(50);
  Values slopes;
  for (const double value : u) slopes.push_back(slope(value));
  const Values expected = differences(u, [&] {
    double sum = 0;
    for (const double value : u) sum += function(value);
    return sum;
  });
  EXPECT_LE(relative_error(slopes, expected), kTolerance);
}

TEST(OracleTest, SlopesOfActivations) {
  expect_slope(gelu, gelu_slope);
  expect_slope(gelu_erf, gelu_erf_slope);
  expect_slope(silu, silu_slope);
  expect_slope(relu, relu_slope);
}

TEST(OracleTest, LinearGradients) {
  for (const bool transposed : {false, true}) {
    const LinearShape s{4, 5, 3, transposed, DType::f32};
    Values x = draw(20), w = draw(15), b = draw(3), u(12);
    const Values dy = draw(12);
    const auto loss = [&] {
      linear(s, x.data(), w.data(), b.data(), u.data());
      return dot(u, dy);
    };
    Values dx(20), dw(15), db(3);
    linear_backward_input(s, dy.data(), w.data(), dx.data());
    linear_backward_weight(s, x.data(), dy.data(), dw.data(), db.data(), false);
    EXPECT_LE(relative_error(dx, differences(x, loss)), kTolerance);
    EXPECT_LE(relative_error(dw, differences(w, loss)), kTolerance);
    EXPECT_LE(relative_error(db, differences(b, loss)), kTolerance);

    Values twice = dw;
    linear_backward_weight(s, x.data(), dy.data(), twice.data(), db.data(), true);
    for (double& value : dw) value *= 2;
    EXPECT_LE(relative_error(twice, dw), 1e-15);
  }
}

/// Padding, the last 2 of 4 tokens in the second of two samples, is hidden only as keys. With and
/// without dropout.
TEST(OracleTest, AttentionGradients) {
  const std::int32_t lengths[] = {4, 2};
  for (const bool causal : {true, false})
    for (const bool padded : {true, false})
      for (const Index kv_heads : {0, 1, 2, 4}) {
        const AttentionShape s{2, 4, 4, 3, DType::f32, kv_heads, causal, padded};
        const DropoutMask mask{kv_heads == 1 ? 0 : 0.3, {}, s.mask_elements()};
        const auto size = [](Index n) { return static_cast<std::size_t>(8 * n); };
        Values qkv = draw(8 * s.qkv_width()), y(size(12)), lse(size(4)), dqkv(qkv.size());
        const Values dy = draw(8 * 12);
        const std::int32_t* seen = padded ? lengths : nullptr;
        attention_backward(s, dy.data(), qkv.data(), seen, dqkv.data(), mask);
        const Values expected = differences(qkv, [&] {
          attention(s, qkv.data(), seen, y.data(), lse.data(), mask);
          return dot(y, dy);
        });
        EXPECT_LE(relative_error(dqkv, expected), kTolerance)
            << causal << padded << " heads of keys: " << kv_heads;
      }
}

/// Query heads that share keys and values give what they give with a copy for each.
TEST(OracleTest, GroupsOfHeadsShareKeysAndValues) {
  const AttentionShape shared{1, 3, 4, 1, DType::f32, 2}, copied{1, 3, 4, 1, DType::f32};
  const Values in = draw(3 * 8);
  Values copies, y(12), expected(12), lse(12);
  for (std::size_t t = 0; t < 3; ++t)
    for (const std::size_t column : {0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7})
      copies.push_back(in[8 * t + column]);
  attention(shared, in.data(), nullptr, y.data(), lse.data());
  attention(copied, copies.data(), nullptr, expected.data(), lse.data());
  EXPECT_EQ(y, expected);
}

/// What comes after a token has no effect on it, or on the first of three with a length of three.
TEST(OracleTest, AttentionSeesNoHiddenKey) {
  const std::int32_t three = 3;
  for (const bool causal : {true, false}) {
    const AttentionShape s{1, 4, 2, 3, DType::f32, 0, causal, !causal};
    const std::int32_t* lengths = causal ? nullptr : &three;
    Values qkv = draw(4 * 18), y(24), changed(24), lse(8);
    attention(s, qkv.data(), lengths, y.data(), lse.data());
    for (std::size_t i = 3 * 18; i < qkv.size(); ++i) qkv[i] += 1;
    attention(s, qkv.data(), lengths, changed.data(), lse.data());
    EXPECT_TRUE(std::equal(y.begin(), y.begin() + 18, changed.begin()));
    EXPECT_FALSE(std::equal(y.begin(), y.end(), changed.begin()));
    if (causal) continue;
    attention({1, 4, 2, 3, DType::f32, 0, false}, qkv.data(), nullptr, y.data(), lse.data());
    EXPECT_NE(y[0], changed[0]) << "the first token sees the last";
  }
}

}  // namespace
}  // namespace oracle
}  // namespace concertina
