#include "tests/core/kernels/rates.h"

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

/// Returns the median time of a call, measured in batches.
double KernelRates::seconds(Backend& device, const std::function<void()>& call) const {
  std::vector<double> times;
  for (int sample = 0; sample <= sizes_.repeats; ++sample) {  // the first is a warm-up
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

void KernelRates::fused(const std::string& name, double bytes, const Op& op) {
  row(device_, name, bytes, 0, [&] { device_.run(op); });
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
  for (const auto rates :
       {norm_rates, activation_rates, vocabulary_rates, token_row_rates, dropout_rates})
    attempt([&] { rates(*this, compute); });
}

void KernelRates::flat() {
  attempt([&] { flat_rates(*this); });
  attempt([&] { update_rates(*this); });
}

}  // namespace concertina
