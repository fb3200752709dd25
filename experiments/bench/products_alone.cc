#include "experiments/bench/products_alone.h"

#include <algorithm>
#include <type_traits>

namespace concertina {
namespace {

double calls(const KernelTime& kernel, double steps) {
  return static_cast<double>(kernel.calls) / steps;
}

}  // namespace

ProductsAlone::ProductsAlone(const Profile& profile, std::unique_ptr<Backend> backend, double steps,
                             int threads)
    : backend_(std::move(backend)) {
  std::size_t bytes = 0;
  for (const auto& [shape, times] : profile.products) {
    Case& one = cases_.emplace_back();
    one.linear = backend_->linear(shape);
    if (threads > 0) one.whole = cpu::make_whole_products(shape, threads);
    one.shape = shape;
    one.calls = {calls(times.forward, steps), calls(times.input, steps),
                 calls(times.weight, steps)};
    bytes += 2 * ((one.x() + one.y()) * size_of(shape.compute) + one.w() * sizeof(float)) +
             one.linear->packed_bytes() + 8 * kAlignment;
  }
  for (const char* name : {"attention forward", "attention backward"})
    if (const auto kernel = profile.kernels.find(name); kernel != profile.kernels.end())
      attention_flops_ += kernel->second.flops / steps;
  arena_.reserve(bytes + backend_->workspace_bytes() + kAlignment, backend_->memory());
  for (Case& one : cases_) attach(one);
  backend_->set_workspace(arena_.take(backend_->workspace_bytes(), "workspace"));
  for (Case& one : cases_)
    backend_->run(PackWeights{.map = *one.linear, .weight = one.weight, .packed = one.packed});
}

double ProductsAlone::flops() const {
  double sum = attention_flops_;
  for (const Case& one : cases_) sum += one.flops() * (one.calls[0] + one.calls[1] + one.calls[2]);
  return sum;
}

ProductsAlone::Seconds ProductsAlone::measure() {
  Seconds seconds;
  double best_rate = 1;
  const auto least = [&](auto&& product) {
    double time = 1e9;
    for (int i = 0; i < 4; ++i) time = std::min(time, kernel_seconds(backend_->clock(), product));
    return time;
  };
  const auto add = [&](const Case& one, double calls, auto&& tiled, auto&& whole) {
    if (calls == 0) return;
    const double tiles = least(tiled), best = one.whole ? std::min(tiles, least(whole)) : tiles;
    seconds.tiles += calls * tiles;
    seconds.best += calls * best;
    best_rate = std::max(best_rate, one.flops() / best);
  };
  for (Case& one : cases_) {
    Linear& linear = *one.linear;
    add(
        one, one.calls[0],
        [&] {
          backend_->run(
              LinearForward{.map = linear, .x = one.in, .packed = one.packed, .y = one.out});
        },
        [&] { one.whole->forward(one.in, one.out); });
    add(
        one, one.calls[1],
        [&] {
          backend_->run(
              LinearInput{.map = linear, .dy = one.dy, .packed = one.packed, .dx = one.dx});
        },
        [&] { one.whole->backward_input(one.dy, one.dx); });
    add(
        one, one.calls[2],
        [&] {
          backend_->run(LinearWeight{
              .map = linear, .x = one.in, .dy = one.dy, .dweight = one.dw, .accumulate = true});
        },
        [&] { one.whole->backward_weight(one.in, one.dy, one.dw); });
  }
  const double attention = attention_flops_ / best_rate;
  return {seconds.best + attention, seconds.tiles + attention};
}

void ProductsAlone::attach(Case& one) {
  const auto fill = [](auto* values, std::size_t n) {
    using T = std::remove_pointer_t<decltype(values)>;
    for (std::size_t i = 0; i < n; ++i)
      values[i] = rounded<T>(static_cast<float>(i % 97) * 0.01F - 0.5F);
  };
  const auto view = [&](std::size_t n, DType type) {
    const View v = arena_.take(n, type, "bench");
    HostMirror values(backend_->memory(), v);
    if (type == DType::bf16)
      fill(values.host().as<Bf16>(), n);
    else
      fill(values.host().f32(), n);
    values.upload();
    return v;
  };
  const DType type = one.shape.compute;
  one.in = view(one.x(), type), one.dx = view(one.x(), type);
  one.out = view(one.y(), type), one.dy = view(one.y(), type);
  one.weight = view(one.w(), DType::f32), one.dw = view(one.w(), DType::f32);
  one.packed = arena_.take(one.linear->packed_bytes(), "packed");
}

}  // namespace concertina
