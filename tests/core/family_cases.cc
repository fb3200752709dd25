#include "tests/core/family_cases.h"

#include <fmt/format.h>

#include "core/batch.h"
#include "tests/buffer.h"
#include "tests/core/case_tools.h"

namespace concertina {
namespace {

Outputs run_rms_norm(Backend& backend, unsigned seed, std::int64_t rows, std::int64_t width,
                     DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const float eps = data.pick<float>({1e-6F, 1e-5F, 0.5F});
  const Buffer x = data.normal(rows * width, 2, 0.5F, compute);
  const Buffer skip = data.normal(rows * width, 1, 0, compute);
  const Buffer dy = data.normal(rows * width, 1, 0, compute), gamma = data.normal(width);
  const Buffer y(x.size(), compute), rstd(static_cast<std::size_t>(rows));
  backend.run(RmsNorm{x.view(), gamma.view(), y.view(), rstd.view(), eps});

  const Buffer dx(x.size(), compute), dx_skip(x.size(), compute);
  const Buffer in_skip(skip.values(), compute), in_dy(dy.values(), compute);
  const auto input = [&](const Buffer& grad, View residual, const Buffer& to) {
    backend.run(
        RmsNormInput{grad.view(), x.view(), gamma.view(), rstd.view(), residual, to.view()});
  };
  input(dy, {}, dx);
  input(dy, skip.view(), dx_skip);
  input(dy, in_skip.view(), in_skip);
  input(in_dy, skip.view(), in_dy);
  const Buffer dgamma(gamma.size()), dgamma_sum = data.normal(width);
  backend.run(RmsNormWeight{dy.view(), x.view(), rstd.view(), dgamma.view(), false});
  backend.run(RmsNormWeight{dy.view(), x.view(), rstd.view(), dgamma_sum.view(), true});
  backend.synchronize();
  EXPECT_EQ(dx_skip.values(), in_skip.values()) << "dx may be residual_grad";
  EXPECT_EQ(dx_skip.values(), in_dy.values()) << "dx may be dy";
  Outputs outputs;
  keep(outputs, "y", y);
  keep(outputs, "rstd", rstd);
  // The gradient of one column is as good as 0.
  const double terms = largest(rstd) * largest(dy) * largest(gamma);
  keep(outputs, "dx", dx, terms);
  keep(outputs, "dx with skip", dx_skip, terms);
  keep(outputs, "dgamma", dgamma);
  keep(outputs, "dgamma accumulated", dgamma_sum);
  return outputs;
}

/// Turns qkv with fewer heads of k and v than of q; what is beyond the heads that turn stays.
Outputs run_rotary(Backend& backend, unsigned seed, std::int64_t samples, std::int64_t tokens,
                   std::int64_t heads, std::int64_t head_dim, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const std::int64_t stride = heads * head_dim + data.pick<std::int64_t>({0, head_dim, 3});
  const Buffer x = data.normal(samples * tokens * stride, 1, 0, compute);
  const Buffer table(static_cast<std::size_t>(tokens * head_dim));
  const Buffer turned(x.values(), compute), back(x.values(), compute);
  backend.run(RotaryTable{data.pick<double>({1e4, 5e5}), table.view(), tokens, head_dim});
  backend.run(Rotate{turned.view(), table.view(), stride, heads, head_dim, tokens, false});
  backend.run(Rotate{back.view(), table.view(), stride, heads, head_dim, tokens, true});
  backend.synchronize();
  Outputs outputs;
  keep(outputs, "table", table);
  keep(outputs, "x", turned);
  keep(outputs, "x turned back", back);
  return outputs;
}

Outputs run_gated_silu(Backend& backend, unsigned seed, std::int64_t rows, std::int64_t width,
                       DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer u = data.normal(rows * 2 * width, 3, 0, compute);
  const Buffer dy = data.normal(rows * width, 1, 0, compute);
  const Buffer y(dy.size(), compute), du(u.size(), compute), in_u(u.values(), compute);
  backend.run(GatedSilu{u.view(), width, y.view()});
  backend.run(GatedSiluInput{dy.view(), u.view(), width, du.view()});
  backend.run(GatedSiluInput{dy.view(), in_u.view(), width, in_u.view()});
  backend.synchronize();
  EXPECT_EQ(du.values(), in_u.values()) << "du may be u";
  Outputs outputs;
  keep(outputs, "y", y);
  keep(outputs, "du", du);
  return outputs;
}

Outputs run_tanh(Backend& backend, unsigned seed, std::int64_t count, float spread, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
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
  Outputs outputs;
  keep(outputs, "y", y);
  keep(outputs, "dx", dx);
  return outputs;
}

struct Image {
  std::int64_t channels, down, across, patch;  // down x across patches
};

Outputs run_images(Backend& backend, unsigned seed, std::int64_t samples, const Image& shape,
                   DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const auto [channels, down, across, patch] = shape;
  const Buffer image = data.normal(samples * channels * down * across * patch * patch);
  const Buffer patches(image.size(), compute);
  backend.run(
      ImagePatches{image.view(), channels, down * patch, across * patch, patch, patches.view()});
  backend.synchronize();
  Outputs outputs;
  keep(outputs, "patches", patches);
  return outputs;
}

constexpr std::int64_t kMostRead = 3;

/// Targets [samples,tokens] of which each sample has 0 to kMostRead.
Buffer few_targets(Data& data, std::int64_t samples, std::int64_t tokens) {
  Buffer targets(static_cast<std::size_t>(samples * tokens), DType::i32);
  std::fill_n(targets.view().i32(), targets.size(), kIgnored);
  for (std::int64_t s = 0; s < samples; ++s)
    for (std::int64_t count = data.size(0, kMostRead); count > 0; --count)
      targets.view().i32()[s * tokens + data.size(0, tokens - 1)] =
          static_cast<std::int32_t>(data.size(0, 1000));
  return targets;
}

Outputs run_token_rows(Backend& backend, unsigned seed, std::int64_t samples, std::int64_t tokens,
                       std::int64_t width, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const std::int64_t all = samples * (tokens + 1) * width;
  const Buffer x = data.normal(samples * tokens * width, 1, 0, compute);
  const Buffer dy = data.normal(all, 1, 0, compute),
               one = data.normal(samples * width, 1, 0, compute),
               some = data.normal(samples * kMostRead * width, 1, 0, compute);
  const Buffer cls = data.normal(width), wpe = data.normal((tokens + 1) * width);
  // Also those that are out of range.
  const Buffer ends = data.integers(samples, 0, static_cast<std::int32_t>(tokens) + 2);
  const Buffer targets = few_targets(data, samples, tokens + 1);
  const Buffer ends_at(static_cast<std::size_t>(samples), DType::i32);
  const Buffer places(static_cast<std::size_t>(samples * kMostRead), DType::i32),
      taken(places.size(), DType::i32);
  const Buffer y(dy.size(), compute), dx(x.size(), compute), first(one.size(), compute),
      last(one.size(), compute), read(some.size(), compute), spread(dy.size(), compute),
      spread_last(dy.size(), compute), spread_some(dy.size(), compute);
  backend.run(JoinClass{x.view(), cls.view(), wpe.view(), y.view()});
  backend.run(SplitClass{dy.view(), samples, dx.view()});
  backend.run(TakeRows{dy.view(), {}, samples, first.view()});
  backend.run(FindLastRows{ends.view(), tokens + 1, ends_at.view()});
  backend.run(FindTargets{targets.view(), samples, places.view(), taken.view()});
  backend.run(TakeRows{dy.view(), ends_at.view(), samples, last.view()});
  backend.run(TakeRows{dy.view(), places.view(), samples, read.view()});
  backend.run(SpreadRows{one.view(), {}, samples, spread.view()});
  backend.run(SpreadRows{one.view(), ends_at.view(), samples, spread_last.view()});
  backend.run(SpreadRows{some.view(), places.view(), samples, spread_some.view()});
  const Buffer dcls(cls.size()), dwpe(wpe.size()), dcls_sum(cls.values()), dwpe_sum(wpe.values());
  backend.run(JoinClassWeight{dy.view(), dcls.view(), dwpe.view(), false});
  backend.run(JoinClassWeight{dy.view(), dcls_sum.view(), dwpe_sum.view(), true});
  backend.synchronize();
  Outputs outputs;
  keep(outputs, "y", y);
  keep(outputs, "dx", dx);
  keep(outputs, "first rows taken", first);
  keep(outputs, "last rows taken", last);
  keep(outputs, "first rows spread", spread);
  keep(outputs, "last rows spread", spread_last);
  keep(outputs, "rows with targets taken", read);
  keep(outputs, "rows with targets spread", spread_some);
  outputs.push_back(
      {"targets", std::vector<float>(taken.view().i32(), taken.view().i32() + taken.size())});
  keep(outputs, "dcls", dcls, largest(dy));
  keep(outputs, "dwpe", dwpe, largest(dy));
  keep(outputs, "dcls accumulated", dcls_sum, largest(dy));
  keep(outputs, "dwpe accumulated", dwpe_sum, largest(dy));
  return outputs;
}

/// Targets before, in and after the sample.
Outputs run_span(Backend& backend, unsigned seed, std::int64_t samples, std::int64_t tokens,
                 float spread, DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const Buffer logits = data.normal(samples * tokens * 2, spread, 3, compute);
  const auto last = static_cast<std::int32_t>(tokens);
  const Buffer starts = data.integers(samples, -1, last), ends = data.integers(samples, -1, last);
  const Buffer kept(logits.values(), compute), grad(logits.values(), compute);
  const Buffer loss(static_cast<std::size_t>(samples)), same_loss(loss.size());
  const auto run = [&](const Buffer& to, bool training, const Buffer& row_loss) {
    backend.run(SpanCrossEntropy{to.view(), starts.view(), ends.view(), tokens, 0.37F, training,
                                 row_loss.view()});
  };
  run(kept, false, loss);
  run(grad, true, same_loss);
  backend.synchronize();
  EXPECT_EQ(kept.values(), logits.values()) << "logits stay where nothing is trained";
  EXPECT_EQ(loss.values(), same_loss.values());
  Outputs outputs;
  keep(outputs, "row_loss", loss, 1e-3);  // of one token it is 0
  keep(outputs, "dlogits", grad, 0.37 * 1e-3);
  return outputs;
}

}  // namespace

void add_family_cases(std::vector<KernelCase>& cases, unsigned seed, DType compute) {
  Data data(seed);
  const auto add = [&](const std::string& name, auto run) {
    cases.push_back({fmt::format("{} in {}", name, name_of(Precision(compute))), tolerance(compute),
                     std::move(run)});
  };
  const std::int64_t rows = odd_size(data, 200), width = odd_size(data, 300);
  add(fmt::format("rms_norm {}x{}", rows, width),
      [=](Backend& backend) { return run_rms_norm(backend, seed, rows, width, compute); });
  const std::int64_t samples = data.size(1, 3), tokens = odd_size(data, 60),
                     heads = data.size(1, 5),
                     head_dim = data.pick<std::int64_t>({2, 6, 16, 24, 64, 128});
  add(fmt::format("rotary {}x{} heads {} head_dim {}", samples, tokens, heads, head_dim),
      [=](Backend& backend) {
        return run_rotary(backend, seed, samples, tokens, heads, head_dim, compute);
      });
  add(fmt::format("gated_silu {}x{}", rows, width),
      [=](Backend& backend) { return run_gated_silu(backend, seed, rows, width, compute); });
  const float spread = data.pick<float>({1e-4F, 1, 30});
  add(fmt::format("tanh {} spread {}", rows * width, spread),
      [=](Backend& backend) { return run_tanh(backend, seed, rows * width, spread, compute); });
  const Image image{data.pick<std::int64_t>({1, 3}), data.size(1, 4), data.size(1, 4),
                    data.pick<std::int64_t>({1, 4, 5, 7, 8, 14, 16})};
  add(fmt::format("images {}x{} of {}x{} patches {}", samples, image.channels, image.down,
                  image.across, image.patch),
      [=](Backend& backend) { return run_images(backend, seed, samples, image, compute); });
  add(fmt::format("token_rows {}x{}x{}", samples, tokens, width), [=](Backend& backend) {
    return run_token_rows(backend, seed, samples, tokens, width, compute);
  });
  add(fmt::format("span {}x{} spread {}", samples, rows, spread),
      [=](Backend& backend) { return run_span(backend, seed, samples, rows, spread, compute); });
}

}  // namespace concertina
