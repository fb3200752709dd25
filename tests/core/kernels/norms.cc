// Layer norm and RMS norm.
#include <fmt/format.h>

#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/differences.h"
#include "tests/core/kernels/rates.h"
#include "tests/oracle/norms.h"

namespace concertina {
namespace {

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

Outputs run_rms_norm(Backend& backend, unsigned seed, std::int64_t rows, std::int64_t width,
                     DType compute) {
  Data data(seed);
  const Workspace workspace(backend);
  const float eps = data.pick<float>({1e-6F, 1e-5F, 0.5F});
  const Buffer x = data.normal(rows * width, 2, 0.5F, compute);
  const Buffer skip = data.normal(rows * width, 1, 0, compute);
  const Buffer dy = data.normal(rows * width, 1, 0, compute), gamma = data.normal(width);
  const Buffer y(x.size(), compute), rstd(static_cast<std::size_t>(rows));
  backend.run(RmsNorm{x.view(), gamma.view(), {}, y.view(), {}, rstd.view(), eps});

  const Buffer dx(x.size(), compute), dx_skip(x.size(), compute);
  const Buffer in_skip(skip.values(), compute), in_dy(dy.values(), compute);
  const auto input = [&](const Buffer& grad, View residual, const Buffer& to) {
    backend.run(
        RmsNormInput{grad.view(), x.view(), gamma.view(), {}, rstd.view(), residual, to.view()});
  };
  input(dy, {}, dx);
  input(dy, skip.view(), dx_skip);
  input(dy, in_skip.view(), in_skip);
  input(in_dy, skip.view(), in_dy);
  const Buffer dgamma(gamma.size()), dgamma_sum = data.normal(width);
  backend.run(RmsNormWeight{dy.view(), x.view(), {}, rstd.view(), dgamma.view(), {}, false});
  backend.run(RmsNormWeight{dy.view(), x.view(), {}, rstd.view(), dgamma_sum.view(), {}, true});
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
  keep(outputs, "dgamma", dgamma, largest(dy));
  keep(outputs, "dgamma accumulated", dgamma_sum, largest(dy));
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

namespace oracle {
namespace {

TEST(OracleTest, LayerNormGradients) {
  const Index rows = 3, width = 7;
  Values x = draw(21), gamma = draw(7), beta = draw(7), y(21), mean(3), rstd(3);
  const Values dy = draw(21), skip = draw(21);
  const auto loss = [&] {
    layer_norm(rows, width, x.data(), gamma.data(), beta.data(), 1e-5, y.data(), mean.data(),
               rstd.data());
    return dot(y, dy) + dot(x, skip);
  };
  loss();
  Values dx(21), dgamma(7), dbeta(7);
  layer_norm_backward_input(rows, width, dy.data(), x.data(), gamma.data(), mean.data(),
                            rstd.data(), skip.data(), dx.data());
  layer_norm_backward_weight(rows, width, dy.data(), x.data(), mean.data(), rstd.data(),
                             dgamma.data(), dbeta.data(), false);
  EXPECT_LE(relative_error(dx, differences(x, loss)), kTolerance);
  EXPECT_LE(relative_error(dgamma, differences(gamma, loss)), kTolerance);
  EXPECT_LE(relative_error(dbeta, differences(beta, loss)), kTolerance);
}

TEST(OracleTest, RmsNormGradients) {
  const Index rows = 3, width = 7;
  Values x = draw(21), gamma = draw(7), y(21), rstd(3);
  const Values dy = draw(21), skip = draw(21);
  const auto loss = [&] {
    rms_norm(rows, width, x.data(), gamma.data(), 1e-5, y.data(), rstd.data());
    return dot(y, dy) + dot(x, skip);
  };
  loss();
  Values dx(21), dgamma(7);
  rms_norm_backward_input(rows, width, dy.data(), x.data(), gamma.data(), rstd.data(), skip.data(),
                          dx.data());
  rms_norm_backward_weight(rows, width, dy.data(), x.data(), rstd.data(), dgamma.data(), false);
  EXPECT_LE(relative_error(dx, differences(x, loss)), kTolerance);
  EXPECT_LE(relative_error(dgamma, differences(gamma, loss)), kTolerance);
}

}  // namespace
}  // namespace oracle
}  // namespace concertina
