#include "tests/core/kernel_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"

namespace concertina {

RateMemory::RateMemory(Backend& device) : device_(device), random_(1 << 20), wide_(1 << 20) {
  std::mt19937 engine(1);
  std::normal_distribution<float> draw;
  for (std::size_t i = 0; i < wide_.size(); ++i) {
    wide_[i] = draw(engine);
    random_[i] = rounded<Bf16>(wide_[i]);
  }
}

View RateMemory::take(std::int64_t count, DType type) {
  const View view{
      device_.memory().allocate(static_cast<std::size_t>(count) * size_of(type), "bench"),
      static_cast<std::size_t>(count), type};
  for (std::size_t at = 0; type != DType::i32 && at < view.count; at += wide_.size()) {
    const View part = view.slice(at, std::min(wide_.size(), view.count - at));
    device_.memory().copy(type == DType::bf16 ? static_cast<void*>(random_.data()) : wide_.data(),
                          part.data, part.bytes());
  }
  return view;
}

View RateMemory::integers(std::int64_t count, std::int32_t below) {
  std::mt19937 engine(2);
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::int32_t& value : values)
    value = static_cast<std::int32_t>(engine() % static_cast<unsigned>(below));
  const View view = take(count, DType::i32);
  device_.memory().copy(values.data(), view.data, view.bytes());
  return view;
}

KernelRates::KernelRates(Backend& device, const RateSizes& sizes)
    : device_(device), sizes_(sizes), memory_(device) {}

/// The median of a call, in batches.
double KernelRates::seconds(Backend& device, const std::function<void()>& call) const {
  std::vector<double> times;
  for (int sample = 0; sample <= sizes_.repeats; ++sample) {  // the first warms up
    device.synchronize();
    const double start = now();
    for (int i = 0; i < sizes_.batch; ++i) call();
    device.synchronize();
    if (sample > 0) times.push_back((now() - start) / sizes_.batch);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double KernelRates::copy_rate(std::size_t bytes) {
  const std::size_t half = std::min(bytes / 2, from_.bytes());
  return 2.0 * static_cast<double>(half) /
         seconds(device_, [&] { device_.memory().copy(from_.data, to_.data, half); });
}

void KernelRates::copy(std::size_t bytes) {
  fmt::print("{}\n{:<32}{:>10}{:>10}{:>8}{:>10}{:>8}\n", device_.describe(), "kernel", "ms", "GB/s",
             "% copy", "TFLOP/s", "% GEMM");
  const auto elements = static_cast<std::int64_t>(bytes / 2 / sizeof(float));
  from_ = memory_.take(elements, DType::f32), to_ = memory_.take(elements, DType::f32);
  row(device_, "copy", static_cast<double>(bytes), 0,
      [&] { device_.memory().copy(from_.data, to_.data, from_.bytes()); });
  if (sizes_.copy_every_time) return;
  for (const View& view : {from_, to_}) device_.memory().release(view.data, view.bytes());
}

void KernelRates::row(Backend& device, const std::string& name, double bytes, double flops,
                      const std::function<void()>& call) {
  if (copy_ > 0 && sizes_.copy_every_time) copy_ = copy_rate(static_cast<std::size_t>(bytes));
  const double s = seconds(device, call);
  if (copy_ == 0) copy_ = bytes / s;
  if (flops > 0 && gemm_ == 0) gemm_ = flops / s;
  share_ = bytes / s / copy_;
  fmt::print("{:<32}{:>10.3f}{:>10.1f}{:>8.1f}", name, s * 1e3, bytes / s * 1e-9, 100 * share_);
  fmt::print("{:>10.1f}{:>8.1f}\n", flops / s * 1e-12, gemm_ > 0 ? 100 * flops / s / gemm_ : 0);
}

void KernelRates::fused(const std::string& name, double bytes, const std::function<void()>& call) {
  row(device_, name, bytes, 0, call);
  if (share_ >= sizes_.least_share) return;
  ++slow_;
  fmt::print("  slow: {} is at {:.0f} % of the copy, not {:.0f}\n", name, 100 * share_,
             100 * sizes_.least_share);
}

void KernelRates::attempt(const std::function<void()>& part) {
  try {
    part();
  } catch (const Error& error) {
    ++slow_;
    fmt::print("  slow: none at all: {}\n", error.message());
  }
}

void KernelRates::rows(DType compute) {
  attempt([&] { norms(compute); });
  attempt([&] { activations(compute); });
  attempt([&] { ends(compute); });
  attempt([&] { tokens(compute); });
}

void KernelRates::norms(DType compute) {
  const std::int64_t r = sizes_.rows(), c = sizes_.width;
  const View x = memory_.take(r * c, compute), dy = memory_.take(r * c, compute),
             y = memory_.take(r * c, compute);
  const View gamma = memory_.take(c, DType::f32), beta = memory_.take(c, DType::f32);
  const View mean = memory_.take(r, DType::f32), rstd = memory_.take(r, DType::f32);
  const auto bytes = static_cast<double>(x.bytes());
  fused("layer norm", 2 * bytes, [&] { device_.run(LayerNorm{x, gamma, beta, y, mean, rstd}); });
  fused("layer norm dx", 4 * bytes, [&] {
    device_.run(LayerNormInput{dy, x, gamma, mean, rstd, y, y});
  });
  fused("layer norm dW", 2 * bytes, [&] {
    device_.run(LayerNormWeight{dy, x, mean, rstd, gamma, beta, false});
  });
  fused("rms norm", 2 * bytes, [&] { device_.run(RmsNorm{x, gamma, y, rstd}); });
  fused("rms norm dx", 4 * bytes, [&] { device_.run(RmsNormInput{dy, x, gamma, rstd, y, y}); });
  fused("rms norm dW", 2 * bytes, [&] { device_.run(RmsNormWeight{dy, x, rstd, gamma, false}); });
  fused("dropout + residual", 3 * bytes, [&] {
    device_.run(
        ApplyDropout{{.share = 0.1, .at = {}, .sample_elements = sizes_.tokens * c}, x, dy, y});
  });
}

void KernelRates::activations(DType compute) {
  const std::int64_t r = sizes_.rows(), c = sizes_.width;
  const View u = memory_.take(r * 2 * c, compute), du = memory_.take(r * 2 * c, compute),
             y = memory_.take(r * c, compute), dy = memory_.take(r * c, compute);
  const auto bytes = static_cast<double>(y.bytes());
  fused("gated silu", 3 * bytes, [&] { device_.run(GatedSilu{u, c, y}); });
  fused("gated silu dx", 5 * bytes, [&] { device_.run(GatedSiluInput{dy, u, c, du}); });
  fused("tanh", 2 * bytes, [&] { device_.run(Tanh{dy, y}); });
  fused("tanh dx", 3 * bytes, [&] { device_.run(TanhInput{dy, y, dy}); });
  constexpr std::int64_t kHeadDim = 64;
  const View table = memory_.take(sizes_.tokens * kHeadDim, DType::f32);
  device_.run(RotaryTable{1e4, table, sizes_.tokens, kHeadDim});
  fused("rotary embedding", 4 * bytes, [&] {
    device_.run(Rotate{u, table, 2 * c, 2 * c / kHeadDim, kHeadDim, sizes_.tokens, false});
  });
}

void KernelRates::ends(DType compute) {
  const std::int64_t r = sizes_.rows(), c = sizes_.width, v = sizes_.vocabulary, t = sizes_.tokens;
  const View x = memory_.take(r * c, compute), dy = memory_.take(r * c, compute);
  const View tokens = memory_.integers(r, static_cast<std::int32_t>(v)),
             types = memory_.integers(r, 2);
  const View wte = memory_.take(v * c, DType::f32), wpe = memory_.take(t * c, DType::f32),
             wtt = memory_.take(2 * c, DType::f32);
  const auto bytes = static_cast<double>(x.bytes()), gathered = static_cast<double>(r * c) * 4;
  fused("embedding", bytes + gathered, [&] { device_.run(Embed{tokens, wte, wpe, t, x}); });
  fused("embedding with types", bytes + gathered, [&] {
    device_.run(Embed{tokens, wte, wpe, t, x, types, wtt});
  });
  fused("embedding backward", bytes + 2 * gathered, [&] {
    device_.run(EmbedWeight{tokens, dy, t, wte, wpe, true});
  });
  fused("embedding backward, types", bytes + 2 * gathered, [&] {
    device_.run(EmbedWeight{tokens, dy, t, wte, wpe, true, types, wtt});
  });
  const View logits = memory_.take(r * v, compute), loss = memory_.take(r, DType::f32);
  fused("cross entropy", 3 * static_cast<double>(logits.bytes()), [&] {
    device_.run(CrossEntropy{logits, tokens, 1e-4F, true, loss});
  });
  const std::int64_t spans = r * c / (2 * t);
  const View starts = memory_.integers(spans, static_cast<std::int32_t>(t));
  fused("span cross entropy", 2 * bytes, [&] {
    device_.run(SpanCrossEntropy{x, starts, starts, t, 1e-4F, true, loss});
  });
}

/// The kernels of images with patches of 16 x 16 pixels, C wide, T a sample.
void KernelRates::tokens(DType compute) {
  constexpr std::int64_t kPatch = 16;
  const std::int64_t s = sizes_.samples, t = sizes_.tokens, c = sizes_.width;
  const View image = memory_.take(s * t * c, DType::f32), x = memory_.take(s * t * c, compute);
  const View joined = memory_.take(s * (t + 1) * c, compute), one = memory_.take(s * c, compute);
  const View cls = memory_.take(c, DType::f32), wpe = memory_.take((t + 1) * c, DType::f32);
  const auto bytes = static_cast<double>(x.bytes());
  fused("image patches", bytes + static_cast<double>(image.bytes()), [&] {
    device_.run(
        ImagePatches{image, c / (kPatch * kPatch), t / 16 * kPatch, 16 * kPatch, kPatch, x});
  });
  fused("class token", 2 * bytes, [&] { device_.run(JoinClass{x, cls, wpe, joined}); });
  fused("class token dx", 2 * bytes, [&] { device_.run(SplitClass{joined, s, x}); });
  fused("class token dW", bytes, [&] { device_.run(JoinClassWeight{joined, cls, wpe, true}); });
  fused("rows spread", bytes, [&] { device_.run(SpreadRows{one, {}, s, x}); });
}

void KernelRates::flat() {
  std::vector<View> v;
  for (int i = 0; i < 4; ++i) v.push_back(memory_.take(sizes_.flat, DType::f32));
  const auto bytes = static_cast<double>(v[0].bytes());
  std::vector<double> sums(static_cast<std::size_t>(sizes_.flat) / 4096);
  fused("axpby", 3 * bytes, [&] { device_.run(Axpby{1, v[0], 1e-3F, v[1]}); });
  fused("sum of squares", bytes, [&] { device_.run(SumSquares{v[0], 4096, sums}); });
  device_.run(Axpby{0, v[2], 0, v[2]});  // second moments: not negative
  fused("adamw", 7 * bytes, [&] {
    device_.run(AdamWUpdate{{.lr = 1e-4F}, v[0], v[1], v[2], v[3]});
  });
  fused("lamb", 11 * bytes, [&] {
    device_.run(LambUpdate{{{.lr = 1e-4F}}, v[0], v[1], v[2], v[3]});
  });
  fused("scale to unit", 3 * bytes, [&] { device_.run(ScaleToUnit{v[0], 1e-7F}); });
}

}  // namespace concertina
