// Layer norm and RMS norm.
#include <fmt/format.h>

#include "tests/core/kernels/cases.h"
#include "tests/core/kernels/rates.h"

namespace concertina {
namespace {

/// Computes the gradient of a norm's input with input(dy, residual, dx): without a residual, with
/// one, and in place of each.
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

template <bool kCentered>
Outputs run_norm(Backend& backend, Data& data, std::int64_t rows, std::int64_t width,
                 DType compute) {
  const Buffer x = data.normal(rows * width, 2, 0.5F, compute);
  const Buffer skip = data.normal(rows * width, 1, 0, compute);
  const Buffer dy = data.normal(rows * width, 1, 0, compute);
  const Buffer gamma = data.normal(width), beta = data.normal(width);
  const Buffer y(x.size(), compute), mean(static_cast<std::size_t>(rows)), rstd(mean.size());
  const auto of = [](const Buffer& buffer) { return kCentered ? buffer.view() : View{}; };
  const float eps = data.pick<float>({1e-5F, 1e-12F, 0.5F});
  backend.run(NormForward<kCentered>{x.view(), gamma.view(), of(beta), y.view(), of(mean),
                                     rstd.view(), eps});
  // With few columns, the gradient is small compared with its terms: two columns always give +-1,
  // and the gradient of one column is almost 0.
  Outputs outputs{output("y", y), output("rstd", rstd)};
  if (kCentered) outputs.push_back(output("mean", mean));
  for (const bool accumulate : {false, true}) {
    const Buffer dgamma = data.normal(width), dbeta = data.normal(width);
    backend.run(NormWeight<kCentered>{dy.view(), x.view(), of(mean), rstd.view(), dgamma.view(),
                                      of(dbeta), accumulate});
    backend.synchronize();
    const std::string how = accumulate ? " accumulated" : "";
    outputs.push_back(output("dgamma" + how, dgamma, kCentered ? 0 : largest(dy)));
    if (kCentered) outputs.push_back(output("dbeta" + how, dbeta));
  }
  add_input_gradients(backend, outputs, dy, skip, largest(rstd) * largest(dy) * largest(gamma),
                      [&](View grad, View residual, View dx) {
                        backend.run(NormInput<kCentered>{grad, x.view(), gamma.view(), of(mean),
                                                         rstd.view(), residual, dx});
                      });
  return outputs;
}

}  // namespace

void add_norm_cases(CaseRound& round) {
  const std::int64_t rows = odd_size(round.data, 200), width = odd_size(round.data, 300);
  round.add(fmt::format("layer_norm {}x{}", rows, width), run_norm<true>, rows, width);
  round.add(fmt::format("rms_norm {}x{}", rows, width), run_norm<false>, rows, width);
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
