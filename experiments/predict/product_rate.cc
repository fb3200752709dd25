#include "experiments/predict/product_rate.h"

#include <algorithm>

#include "core/arena.h"
#include "core/clock.h"
#include "core/profile_backend.h"
#include "experiments/run/devices.h"

namespace concertina {
namespace {

constexpr std::int64_t kMostRows = 1024, kMostColumns = 2048;
constexpr double kRateSeconds = 0.25;  // of measuring, after one run to warm up

double flops(const LinearShape& shape) {
  return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.in) *
         static_cast<double>(shape.out);
}

/// The units' operators say themselves which maps they are.
LinearShape largest_map(const Model& model, const RunConfig& config) {
  const std::unique_ptr<Backend> backend = make_sizing_backend(config, 1);
  Profile profile;
  const std::unique_ptr<Backend> recorder = make_profile_backend(*backend, profile);
  for (int unit = 0; unit < std::ssize(model.spec().units); ++unit)
    model.make_unit(unit, *recorder);
  LinearShape largest;
  for (const auto& [shape, times] : profile.products)
    if (flops(shape) > flops(largest)) largest = shape;
  return largest;
}

}  // namespace

ProductRate measure_product_rate(const Model& model, const RunConfig& config, int threads) {
  LinearShape shape = largest_map(model, config);
  shape.rows = std::min(shape.rows, kMostRows);
  shape.in = std::min(shape.in, kMostColumns);
  shape.out = std::min(shape.out, kMostColumns);
  const std::unique_ptr<Backend> backend = make_backend(config, threads);
  const std::unique_ptr<Linear> linear = backend->linear(shape);
  const auto x = static_cast<std::size_t>(shape.rows * shape.in);
  const auto y = static_cast<std::size_t>(shape.rows * shape.out);
  const auto w = static_cast<std::size_t>(shape.in * shape.out);
  Arena arena(2 * (x + y) * size_of(shape.compute) + 2 * w * sizeof(float) +
                  linear->packed_bytes() + backend->workspace_bytes() + 8 * kAlignment,
              backend->memory());
  const auto view = [&](std::size_t count, DType type) {
    return arena.take(count, type, "product");
  };
  const View in = view(x, shape.compute), dx = view(x, shape.compute), out = view(y, shape.compute),
             dy = view(y, shape.compute), weight = view(w, DType::f32),
             dweight = view(w, DType::f32);
  void* packed = arena.take(linear->packed_bytes(), "packed");
  backend->set_workspace(arena.take(backend->workspace_bytes(), "workspace"));
  backend->run(PackWeights{.map = *linear, .weight = weight, .packed = packed});
  const auto once = [&] {
    return kernel_seconds(backend->clock(), [&] {
      backend->run(LinearForward{.map = *linear, .x = in, .packed = packed, .y = out});
      backend->run(LinearInput{.map = *linear, .dy = dy, .packed = packed, .dx = dx});
      backend->run(
          LinearWeight{.map = *linear, .x = in, .dy = dy, .dweight = dweight, .accumulate = false});
    });
  };
  once();
  double least = once();
  for (const double end = now() + kRateSeconds; now() < end;) least = std::min(least, once());
  return {3 * flops(shape) / least, shape};
}

}  // namespace concertina
