#include "tests/core/kernel_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/buffer.h"
#include "tests/core/case_tools.h"
#include "tests/core/family_cases.h"
#include "tests/core/update_cases.h"

namespace concertina {
namespace {

/// Two maps as in an MLP: `up` [I,O] with a GELU behind it feeds `down` [O,I], optionally stored
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
  backend.run(LinearInput{*up, dg.view(), packed_up.data(), {}, dx.view()});
  const Buffer dx_skip(r_in, compute), du_apart(dg.values(), compute), unbiased_sum(r_in, compute);
  backend.run(LinearForward{*down,
                            g.view(),
                            packed_down.data(),
                            {},
                            {Epilogue::Kind::residual, x.view()},
                            unbiased_sum.view()});
  backend.run(GeluInput{Epilogue::Kind::gelu, exact_aux.view(), du_apart.view()});
  backend.run(LinearInput{
      *up, dg.view(), packed_up.data(), {Epilogue::Kind::residual, x.view()}, dx_skip.view()});

  const Buffer dw(w_up.size()), db(b_up.size()), dw_alone(w_up.size()), db_alone(b_up.size());
  const Buffer dw_sum = data.normal(in * out), db_sum = data.normal(out);
  backend.run(LinearWeight{*up, x.view(), dg.view(), dw.view(), db.view(), false});
  backend.run(LinearWeight{*up, x.view(), dg.view(), dw_alone.view(), {}, false});
  backend.run(LinearWeight{*up, x.view(), dg.view(), {}, db_alone.view(), false});
  backend.run(LinearWeight{*up, x.view(), dg.view(), dw_sum.view(), db_sum.view(), true});
  backend.synchronize();

  Outputs outputs;
  keep(outputs, "y", plain, largest(b_up));  // x W may be just -b
  keep(outputs, "y without bias", unbiased);
  keep(outputs, "gelu", g, largest(b_up));
  keep(outputs, "gelu by erf", erf_g, largest(b_up));
  keep(outputs, "dx behind gelu by erf", erf_du);
  // g is rounded, from an u that may be: its errors are those of the terms of a sum over it.
  const double terms = largest(g) * largest(w_down);
  keep(outputs, "residual", z, std::max(terms, largest(b_down)));
  keep(outputs, "dx", dg);
  keep(outputs, "dx behind gelu", du);
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

/// A shape that is `padded` has lengths of 1, all, and between.
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
  backend.run(AttentionForward{*attention, qkv.view(), lengths, y.view(), lse.view()});
  backend.run(AttentionBackward{*attention, dy.view(), qkv.view(), lengths, y.view(), lse.view(),
                                dqkv.view()});
  backend.synchronize();
  Outputs outputs;
  keep(outputs, "y", y);
  keep(outputs, "lse", lse);
  keep(outputs, "dqkv", dqkv);
  return outputs;
}

Outputs run_layer_norm(Backend& backend, unsigned seed, std::int64_t rows, std::int64_t width,
                       DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer x = data.normal(rows * width, 2, 0.5F, compute);
  const Buffer skip = data.normal(rows * width, 1, 0, compute);
  const Buffer dy = data.normal(rows * width, 1, 0, compute);
  const Buffer gamma = data.normal(width), beta = data.normal(width);
  const Buffer y(x.size(), compute), mean(static_cast<std::size_t>(rows)), rstd(mean.size());
  const float eps = data.pick<float>({1e-5F, 1e-12F, 0.5F});
  backend.run(
      LayerNorm{x.view(), gamma.view(), beta.view(), y.view(), mean.view(), rstd.view(), eps});

  const Buffer dx(x.size(), compute), dx_skip(x.size(), compute);
  const Buffer in_skip(skip.values(), compute), in_dy(dy.values(), compute);
  const auto input = [&](const Buffer& grad, View residual, const Buffer& to) {
    backend.run(LayerNormInput{grad.view(), x.view(), gamma.view(), mean.view(), rstd.view(),
                               residual, to.view()});
  };
  input(dy, {}, dx);
  input(dy, skip.view(), dx_skip);
  input(dy, in_skip.view(), in_skip);
  input(in_dy, skip.view(), in_dy);
  const Buffer dgamma(gamma.size()), dbeta(gamma.size());
  const Buffer dgamma_sum = data.normal(width), dbeta_sum = data.normal(width);
  backend.run(LayerNormWeight{dy.view(), x.view(), mean.view(), rstd.view(), dgamma.view(),
                              dbeta.view(), false});
  backend.run(LayerNormWeight{dy.view(), x.view(), mean.view(), rstd.view(), dgamma_sum.view(),
                              dbeta_sum.view(), true});
  backend.synchronize();
  EXPECT_EQ(dx_skip.values(), in_skip.values()) << "dx may be residual_grad";
  EXPECT_EQ(dx_skip.values(), in_dy.values()) << "dx may be dy";
  Outputs outputs;
  keep(outputs, "y", y);
  keep(outputs, "mean", mean);
  keep(outputs, "rstd", rstd);
  // With few columns the gradient is small beside its terms: two columns always give +-1.
  keep(outputs, "dx", dx, largest(rstd) * largest(dy) * largest(gamma));
  keep(outputs, "dx with skip", dx_skip, largest(rstd) * largest(dy) * largest(gamma));
  keep(outputs, "dgamma", dgamma);
  keep(outputs, "dbeta", dbeta);
  keep(outputs, "dgamma accumulated", dgamma_sum);
  keep(outputs, "dbeta accumulated", dbeta_sum);
  return outputs;
}

/// Which tables there are: GPT-2's two, Llama's one, BERT's three.
struct Tables {
  bool positions;
  std::int64_t types;
};

Outputs run_embedding(Backend& backend, unsigned seed, std::int64_t samples, std::int64_t tokens,
                      std::int64_t width, std::int64_t vocabulary, Tables tables, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const auto ids = [&](std::int64_t below) {
    return data.integers(samples * tokens, 0, static_cast<std::int32_t>(below - 1));
  };
  const Buffer token = ids(vocabulary), type = ids(std::max<std::int64_t>(tables.types, 1));
  const auto of = [](const Buffer& buffer, bool there) { return there ? buffer.view() : View{}; };
  const View types = of(type, tables.types > 0);
  const Buffer wte = data.normal(vocabulary * width), wpe = data.normal(tokens * width),
               wtt = data.normal(std::max<std::int64_t>(tables.types, 1) * width);
  const Buffer dx = data.normal(samples * tokens * width, 1, 0, compute);
  const Buffer x(dx.size(), compute);
  backend.run(Embed{token.view(), wte.view(), of(wpe, tables.positions),
                    tables.positions ? tokens : 0, x.view(), types, of(wtt, tables.types > 0)});
  Outputs outputs;
  for (const bool accumulate : {false, true}) {
    const Buffer dwte = data.normal(vocabulary * width), dwpe = data.normal(tokens * width),
                 dwtt = data.normal(static_cast<std::int64_t>(wtt.size()));
    backend.run(EmbedWeight{token.view(), dx.view(), tables.positions ? tokens : 0, dwte.view(),
                            of(dwpe, tables.positions), accumulate, types,
                            of(dwtt, tables.types > 0)});
    backend.synchronize();
    const std::string how = accumulate ? " accumulated" : "";
    keep(outputs, "dwte" + how, dwte);
    keep(outputs, "dwpe" + how, dwpe);
    keep(outputs, "dwtt" + how, dwtt);
  }
  keep(outputs, "x", x);
  return outputs;
}

Outputs run_cross_entropy(Backend& backend, unsigned seed, std::int64_t rows,
                          std::int64_t vocabulary, float spread, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer logits = data.normal(rows * vocabulary, spread, 3, compute);
  const Buffer targets = data.integers(rows, -1, static_cast<std::int32_t>(vocabulary - 1));
  const Buffer kept(logits.values(), compute), grad(logits.values(), compute);
  const Buffer loss(static_cast<std::size_t>(rows)), same_loss(loss.size());
  backend.run(CrossEntropy{kept.view(), targets.view(), 0.37F, false, loss.view()});
  backend.run(CrossEntropy{grad.view(), targets.view(), 0.37F, true, same_loss.view()});
  backend.synchronize();
  EXPECT_EQ(kept.values(), logits.values()) << "logits stay where nothing is trained";
  EXPECT_EQ(loss.values(), same_loss.values());
  Outputs outputs;
  keep(outputs, "row_loss", loss);
  keep(outputs, "dlogits", grad);
  return outputs;
}

/// The share is that at which one element is just kept: a mask that differs anywhere shows.
Outputs run_dropout(Backend& backend, unsigned seed, std::int64_t samples,
                    std::int64_t sample_elements, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
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
  EXPECT_NE(y.values()[0], 0) << "at the threshold is kept";
  EXPECT_EQ(in_place.values(), added.values()) << "y may be u";
  EXPECT_EQ(whole.values(), u.values());
  Outputs outputs;
  keep(outputs, "y", y);
  keep(outputs, "y with residual", added);
  return outputs;
}

Outputs run_elementwise(Backend& backend, unsigned seed, std::int64_t count) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer x = data.normal(count), y = data.normal(count), cleared = data.normal(count);
  backend.run(Axpby{1.25F, x.view(), -0.5F, y.view()});
  backend.run(Axpby{-2, x.view(), 0, cleared.view()});

  const auto block = static_cast<std::size_t>(data.size(1, 300));
  std::vector<double> sums((x.size() + block - 1) / block, static_cast<double>(kPoison));
  backend.run(SumSquares{x.view(), block, sums});

  backend.synchronize();
  Outputs outputs;
  keep(outputs, "axpby", y);
  keep(outputs, "axpby over", cleared);
  outputs.push_back({"sum_squares", {sums.begin(), sums.end()}, 0});
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

void expect_close(const std::vector<Output>& got, const std::vector<Output>& expected,
                  const KernelCase& kernel) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_LE(relative_error(got[i].values, expected[i].values, expected[i].scale),
              kernel.tolerance)
        << kernel.name << ": " << got[i].name;
}

std::vector<KernelCase> kernel_cases(unsigned seed, int rounds, const Precision& precision) {
  Data data(seed);
  const DType compute = precision.storage;
  std::vector<KernelCase> cases;
  const auto add = [&](std::string name, double allowed, auto run) {
    cases.push_back({fmt::format("{} in {}", name, name_of(precision)), allowed, std::move(run)});
  };
  const auto add_linear = [&](unsigned s, const LinearShape& shape) {
    add(fmt::format("linear {}x{}x{}{}", shape.rows, shape.in, shape.out,
                    shape.transposed ? " transposed" : ""),
        tolerance(shape), [=](Backend& backend) { return run_linear(backend, s, shape); });
  };
  const auto add_attention = [&](unsigned s, const AttentionShape& shape) {
    add(fmt::format("attention samples {} tokens {} heads {} head_dim {} kv_heads {}{}{}",
                    shape.samples, shape.tokens, shape.heads, shape.head_dim, shape.kv(),
                    shape.causal ? "" : " not causal", shape.padded ? " padded" : ""),
        tolerance(compute), [=](Backend& backend) { return run_attention(backend, s, shape); });
  };
  for (int round = 0; round < rounds; ++round) {
    const unsigned s = seed * 1000 + static_cast<unsigned>(round);
    LinearShape linear{
        odd_size(data, 200), odd_size(data, 130), odd_size(data, 300), round % 2 == 1, compute,
        precision.products};
    add_linear(s, linear);
    if (precision.products == Products::fp8) {  // of such sizes only is a product done in fp8
      for (std::int64_t* size : {&linear.rows, &linear.in, &linear.out})
        *size = (*size + 15) / 16 * 16;
      add_linear(s, linear);
    }
    if (precision.products != Products::as_stored) continue;
    add_attention(s, {data.size(1, 3), odd_size(data, 130), data.size(1, 5),
                      data.pick<std::int64_t>({1, 8, 24, 64, 80}), compute});
    AttentionShape masked{3, data.pick<std::int64_t>({1, 33, 70, data.size(2, 100)}), 4,
                          data.pick<std::int64_t>({5, 16, 64, 80}), compute};
    masked.kv_heads = data.pick<std::int64_t>({1, 2, 4});
    masked.causal = round % 2 == 0, masked.padded = round % 4 < 2;
    add_attention(s, masked);
    const std::int64_t rows = odd_size(data, 200), width = odd_size(data, 300);
    add(fmt::format("layer_norm {}x{}", rows, width), tolerance(compute),
        [=](Backend& backend) { return run_layer_norm(backend, s, rows, width, compute); });
    const std::int64_t samples = data.size(1, 4), tokens = odd_size(data, 60);
    const std::int64_t vocabulary = odd_size(data, 300);
    for (const Tables tables : {Tables{true, 0}, {false, 0}, {true, 2}, {false, 3}})
      add(fmt::format("embedding {}x{}x{} vocabulary {} positions {} types {}", samples, tokens,
                      width, vocabulary, tables.positions, tables.types),
          tolerance(compute), [=](Backend& backend) {
            return run_embedding(backend, s, samples, tokens, width, vocabulary, tables, compute);
          });
    const float spread = data.pick<float>({1e-3F, 1, 30});
    add(fmt::format("cross_entropy {}x{} spread {}", rows, vocabulary, spread), tolerance(compute),
        [=](Backend& backend) {
          return run_cross_entropy(backend, s, rows, vocabulary, spread, compute);
        });
    const std::int64_t elements = tokens * width;
    add(fmt::format("dropout {}x{}", samples, elements), tolerance(compute),
        [=](Backend& backend) { return run_dropout(backend, s, samples, elements, compute); });
    const std::int64_t count = odd_size(data, 10000);
    add(fmt::format("elementwise {}", count), tolerance(compute),
        [=](Backend& backend) { return run_elementwise(backend, s, count); });
    add_update_cases(cases, s, count, round % 2 == 0);
  }
  if (precision.products == Products::as_stored)
    for (int round = 0; round < rounds; ++round)
      add_family_cases(cases, seed * 1000 + static_cast<unsigned>(round), compute);
  // More rows, columns and keys than one product of an implementation may take.
  for (const bool transposed : {false, true})
    add_linear(seed, {1100, 40, 400, transposed, compute, precision.products});
  if (precision.products != Products::as_stored) return cases;
  if (compute == DType::f32) add_update_cases(cases, seed, 20'003, false);  // of several pieces
  add("dropout 2x16420", tolerance(compute),
      [=](Backend& backend) { return run_dropout(backend, seed, 2, 16420, compute); });
  add_attention(seed, {1, 700, 2, 16, compute});
  add_attention(seed, {1, 530, 2, 8, compute, 1, false, true});
  return cases;
}

}  // namespace concertina
