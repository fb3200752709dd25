#include "models/units/pre_norm.h"

namespace concertina {

std::vector<ParameterSpec> PreNorm::parameters(std::int64_t width) {
  return {{"ln.weight", {width}, false, {Init::Kind::ones}, ""},
          {"ln.bias", {width}, false, {Init::Kind::zeros}, ""}};
}

void PreNorm::forward(const UnitIo& io, const Kept& kept) const {
  backend_.run(LayerNorm{.x = io.input,
                         .gamma = gamma_,
                         .beta = beta_,
                         .y = kept.h,
                         .mean = kept.mean,
                         .rstd = kept.rstd});
}

void PreNorm::backward_input(const UnitIo& io, const Kept& kept, View dh, View skip_grad) const {
  if (io.input_grad.empty()) return;
  backend_.run(LayerNormInput{.dy = dh,
                              .x = io.input,
                              .gamma = gamma_,
                              .mean = kept.mean,
                              .rstd = kept.rstd,
                              .residual_grad = skip_grad,
                              .dx = io.input_grad});
}

void PreNorm::backward_weight(const UnitIo& io, const Kept& kept, View dh,
                              std::span<const UnitGradient> gradients) const {
  backend_.run(LayerNormWeight{.dy = dh,
                               .x = io.input,
                               .mean = kept.mean,
                               .rstd = kept.rstd,
                               .dgamma = gradients[kWeight].view,
                               .dbeta = gradients[kBias].view,
                               .accumulate = gradients[kWeight].accumulate});
}

}  // namespace concertina
