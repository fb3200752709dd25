#include "models/units/mlp.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/units/dense.h"
#include "models/units/graphs.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

struct Saved {
  View g, aux;  // [R,F], [R,F] (what the activation's gradient needs)
  static auto slots(const UnitShape& s, const MlpSpec& spec) {
    return std::array{Slot{&Saved::g, s.rows() * spec.hidden, s.compute},
                      Slot{&Saved::aux, s.rows() * spec.hidden, s.compute}};
  }
};

struct Grads {
  View du;  // [R,F]: before the activation
  static auto slots(const UnitShape& s, const MlpSpec& spec) {
    return std::array{Slot{&Grads::du, s.rows() * spec.hidden, s.compute}};
  }
};

DenseSpec up_spec(const UnitShape& s, const MlpSpec& spec) {
  return {.name = "up",
          .in = s.width,
          .out = spec.hidden,
          .std = spec.std,
          .matrices = {spec.hidden},
          .split = DenseSpec::Split::columns};
}
DenseSpec down_spec(const UnitShape& s, const MlpSpec& spec) {
  return {.name = "down",
          .in = spec.hidden,
          .out = s.width,
          .std = spec.residual_std,
          .matrices = {s.width},
          .split = DenseSpec::Split::rows};
}

struct ActivationName {
  std::string_view name;
  Epilogue::Kind kind;
};
constexpr std::array kActivations{ActivationName{"gelu", Epilogue::Kind::gelu_erf},
                                  ActivationName{"gelu_tanh", Epilogue::Kind::gelu},
                                  ActivationName{"relu", Epilogue::Kind::relu},
                                  ActivationName{"silu", Epilogue::Kind::silu}};

class MlpBranch final : public Branch {
 public:
  MlpBranch(const UnitShape& shape, const MlpSpec& spec, Backend& backend)
      : shape_(shape),
        spec_(spec),
        up_(up_spec(shape, spec), shape.rows(), shape, backend),
        down_(down_spec(shape, spec), shape.rows(), shape, backend) {}

  std::vector<UnitPart*> parts() override { return {&up_, &down_}; }

  void forward(const UnitIo& /*io*/, const BranchMemory& memory, View h, Epilogue last,
               View y) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    up_.forward(h, {spec_.activation, s.aux}, s.g);
    if (!y.empty()) down_.forward(s.g, last, y);
  }

  void backward_input(const UnitIo& /*io*/, const BranchMemory& memory, View du, View /*scratch*/,
                      Epilogue last, View dh) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    const Grads g = slots_in<Grads>(memory.grads, shape_, spec_);
    down_.backward_input(du, {spec_.activation, s.aux}, g.du);
    if (!dh.empty()) up_.backward_input(g.du, last, dh);
  }

  void backward_weight(const UnitIo& /*io*/, const BranchMemory& memory, View h, View du,
                       std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    down_.backward_weight(s.g, du, gradients);
    up_.backward_weight(h, slots_in<Grads>(memory.grads, shape_, spec_).du, gradients);
  }

 private:
  UnitShape shape_;
  MlpSpec spec_;
  Dense up_, down_;
};

}  // namespace

std::vector<std::string_view> activation_names() {
  std::vector<std::string_view> names;
  for (const ActivationName& one : kActivations) names.push_back(one.name);
  return names;
}

Epilogue::Kind activation_of(std::string_view name) {
  const auto found = std::ranges::find(kActivations, name, &ActivationName::name);
  CONCERTINA_CHECK(found != kActivations.end(), "there is no activation {}", name);
  return found->kind;
}

BranchPlan mlp_branch(const UnitShape& shape, const MlpSpec& spec) {
  BranchPlan plan;
  double product = 0;
  for (const DenseSpec& dense : {up_spec(shape, spec), down_spec(shape, spec)}) {
    for (ParameterSpec& parameter : dense.parameters()) plan.parameters.push_back(parameter);
    product += dense.flops(shape.rows());
  }
  plan.cost = {.forward_flops = product,
               .input_flops = product,
               .weight_flops = product,
               .saved_bytes = slot_bytes<Saved>(shape, spec),
               .grad_bytes = slot_bytes<Grads>(shape, spec),
               .again_flops = up_spec(shape, spec).flops(shape.rows()),
               .model_flops = product,
               .forward_moved = shape.moved(2 * spec.hidden),
               .input_moved = shape.moved(4 * spec.hidden),
               .split = {.parts = spec.hidden}};
  plan.make = [shape, spec](Backend& backend) {
    return std::make_unique<MlpBranch>(shape, spec, backend);
  };
  plan.describe = [shape, spec](GraphBuilder& graph, const std::string& x) {
    const std::string u = up_spec(shape, spec).describe(graph, x);
    return down_spec(shape, spec).describe(graph, describe_activation(graph, spec.activation, u));
  };
  return plan;
}

}  // namespace concertina
