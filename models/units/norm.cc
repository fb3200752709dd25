#include "models/units/norm.h"

namespace concertina {

std::vector<ParameterSpec> NormSpec::parameters(std::int64_t width) const {
  std::vector<ParameterSpec> list{{name + ".weight", {width}, false, {Init::Kind::ones}, ""}};
  if (kind == Kind::layer)
    list.push_back({name + ".bias", {width}, false, {Init::Kind::zeros}, ""});
  return list;
}

std::string NormSpec::describe(GraphBuilder& graph, const std::string& x) const {
  const std::string weight = graph.parameter(name + ".weight");
  if (kind == Kind::layer)
    return graph.add("LayerNormalization", {x, weight, graph.parameter(name + ".bias")},
                     {{"axis", std::int64_t{-1}}, {"epsilon", eps}});
  const std::string square =
      graph.add("ReduceMean", {graph.add("Mul", {x, x})},
                {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", std::int64_t{1}}});
  const std::string size = graph.add("Sqrt", {graph.add("Add", {square, graph.number(eps)})});
  return graph.add("Mul", {graph.add("Div", {x, size}), weight});
}

void Norm::attach(std::span<const View> weights, void* /*packed*/) {
  gamma_ = weights[kWeight];
  if (centers()) beta_ = weights[kBias];
}

void Norm::forward(View x, const NormStatistics& kept, View y) const {
  by_kind([&]<bool kCentered>() {
    backend_.run(NormForward<kCentered>{.x = x,
                                        .gamma = gamma_,
                                        .beta = beta_,
                                        .y = y,
                                        .mean = kept.mean,
                                        .rstd = kept.rstd,
                                        .eps = spec_.eps});
  });
}

void Norm::backward_input(View dy, View x, const NormStatistics& kept, View residual_grad,
                          View dx) const {
  by_kind([&]<bool kCentered>() {
    backend_.run(NormInput<kCentered>{.dy = dy,
                                      .x = x,
                                      .gamma = gamma_,
                                      .mean = kept.mean,
                                      .rstd = kept.rstd,
                                      .residual_grad = residual_grad,
                                      .dx = dx});
  });
}

void Norm::backward_weight(View dy, View x, const NormStatistics& kept,
                           std::span<const UnitGradient> gradients) const {
  const UnitGradient& weight = own(gradients, kWeight);
  if (weight.view.empty()) return;  // frozen
  by_kind([&]<bool kCentered>() {
    backend_.run(NormWeight<kCentered>{.dy = dy,
                                       .x = x,
                                       .mean = kept.mean,
                                       .rstd = kept.rstd,
                                       .dgamma = weight.view,
                                       .dbeta = kCentered ? own(gradients, kBias).view : View{},
                                       .accumulate = weight.accumulate});
  });
}

}  // namespace concertina
