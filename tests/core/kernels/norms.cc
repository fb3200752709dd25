// Layer norm and RMS norm.
#include <fmt/format.h>

#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/rates.h"

namespace concertina {
namespace {

/// The gradient of a norm's input by input(dy, residual, dx): without a residual, with one, and in
/// place of each.
template <class Input>
void add_input_gradients(Backend& backend, Outputs& outputs, const Buffer& dy, const Buffer& skip,
                         double scale, const Input& input) {
  const DType compute = dy.view().dtype;
  const Buffer dx(dy.size(), compute), dx_skip(dy.size(), compute);
  const Buffer in_skip(skip.values(), compute), in_dy(dy.values(), compute);
  input(dy.view(), View{}, dx.view());
  input(dy.view(), skip.view(), dx_skip.view());
  input(dy.view(), in_skip.view(), in_skip.view());
  input(in_dy.view(), skip.view(), in_dy.view());
  backend.synchronize();
  EXPECT_EQ(dx_skip.values(), in_skip.values()) << "dx may be residual_grad";
  EXPECT_EQ(dx_skip.values(), in_dy.values()) << "dx may be dy";
  outputs.push_back(output("dx", dx, scale));
  outputs.push_back(output("dx with skip", dx_skip, scale));
}

Outputs run_layer_norm(Backend& backend, Data& data, std::int64_t rows, std::int64_t width,
                       DType compute) {
  const Buffer x = data.normal(rows * width, 2, 0.5F, compute);
  const Buffer skip = data.normal(rows * width, 1, 0, compute);
  const Buffer dy = data.normal(rows * width, 1, 0, compute);
  const Buffer gamma = data.normal(width), beta = data.normal(width);
  const Buffer y(x.size(), compute), mean(static_cast<std::size_t>(rows)), rstd(mean.size());
  const float eps = data.pick<float>({1e-5F, 1e-12F, 0.5F});
  backend.run(
      LayerNorm{x.view(), gamma.view(), beta.view(), y.view(), mean.view(), rstd.view(), eps});
  const Buffer dgamma(gamma.size()), dbeta(gamma.size());
  const Buffer dgamma_sum = data.normal(width), dbeta_sum = data.normal(width);
  backend.run(LayerNormWeight{dy.view(), x.view(), mean.view(), rstd.view(), dgamma.view(),
                              dbeta.view(), false});
  backend.run(LayerNormWeight{dy.view(), x.view(), mean.view(), rstd.view(), dgamma_sum.view(),
                              dbeta_sum.view(), true});
  backend.synchronize();
  Outputs outputs{output("y", y),
                  output("mean", mean),
                  output("rstd", rstd),
                  output("dgamma", dgamma),
                  output("dbeta", dbeta),
                  output("dgamma accumulated", dgamma_sum),
                  output("dbeta accumulated", dbeta_sum)};
  // With few columns the gradient is small beside its terms: two columns always give +-1.
  add_input_gradients(backend, outputs, dy, skip, largest(rstd) * largest(dy) * largest(gamma),
                      [&](View grad, View residual, View dx) {
                        backend.run(LayerNormInput{grad, x.view(), gamma.view(), mean.view(),
                                                   rstd.view(), residual, dx});
                      });
  return outputs;
}

Outputs run_rms_norm(Backend& backend, Data& data, std::int64_t rows, std::int64_t width,
                     DType compute) {
  const float eps = data.pick<float>({1e-6F, 1e-5F, 0.5F});
  const Buffer x = data.normal(rows * width, 2, 0.5F, compute);
  const Buffer skip = data.normal(rows * width, 1, 0, compute);
  const Buffer dy = data.normal(rows * width, 1, 0, compute), gamma = data.normal(width);
  const Buffer y(x.size(), compute), rstd(static_cast<std::size_t>(rows));
  backend.run(RmsNorm{x.view(), gamma.view(), {}, y.view(), {}, rstd.view(), eps});
  const Buffer dgamma(gamma.size()), dgamma_sum = data.normal(width);
  backend.run(RmsNormWeight{dy.view(), x.view(), {}, rstd.view(), dgamma.view(), {}, false});
  backend.run(RmsNormWeight{dy.view(), x.view(), {}, rstd.view(), dgamma_sum.view(), {}, true});
  backend.synchronize();
  Outputs outputs{output("y", y), output("rstd", rstd), output("dgamma", dgamma, largest(dy)),
                  output("dgamma accumulated", dgamma_sum, largest(dy))};
  // The gradient of one column is as good as 0.
  add_input_gradients(
      backend, outputs, dy, skip, largest(rstd) * largest(dy) * largest(gamma),
      [&](View grad, View residual, View dx) {
        backend.run(RmsNormInput{grad, x.view(), gamma.view(), {}, rstd.view(), residual, dx});
      });
  return outputs;
}

}  // namespace

void add_norm_cases(CaseRound& round) {
  const std::int64_t rows = odd_size(round.data, 200), width = odd_size(round.data, 300);
  round.add(fmt::format("layer_norm {}x{}", rows, width), run_layer_norm, rows, width);
  round.add(fmt::format("rms_norm {}x{}", rows, width), run_rms_norm, rows, width);
}

void norm_rates(KernelRates& rates, DType compute) {
  const RateSizes& sizes = rates.sizes();
  RateMemory& memory = rates.memory();
  const std::int64_t r = sizes.rows(), c = sizes.width;
  const View x = memory.take(r * c, compute), dy = memory.take(r * c, compute),
             y = memory.take(r * c, compute);
  const View gamma = memory.take(c, DType::f32), beta = memory.take(c, DType::f32);
  const View mean = memory.take(r, DType::f32), rstd = memory.take(r, DType::f32);
  const auto bytes = static_cast<double>(x.bytes());
  rates.fused("layer norm", 2 * bytes, LayerNorm{x, gamma, beta, y, mean, rstd});
  rates.fused("layer norm dx", 4 * bytes, LayerNormInput{dy, x, gamma, mean, rstd, y, y});
  rates.fused("layer norm dW", 2 * bytes, LayerNormWeight{dy, x, mean, rstd, gamma, beta, false});
  rates.fused("rms norm", 2 * bytes, RmsNorm{x, gamma, {}, y, {}, rstd});
  rates.fused("rms norm dx", 4 * bytes, RmsNormInput{dy, x, gamma, {}, rstd, y, y});
  rates.fused("rms norm dW", 2 * bytes, RmsNormWeight{dy, x, {}, rstd, gamma, {}, false});
}

}  // namespace concertina
