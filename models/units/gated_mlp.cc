#include "models/units/mlp.h"

#include <array>

#include "models/units/dense.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

struct Saved {
  View u, g;  // [R,2F] gate and up, [R,F]
  static auto slots(const UnitShape& s, const GatedMlpSpec& spec) {
    return std::array{Slot{&Saved::u, s.rows() * 2 * spec.hidden, s.compute},
                      Slot{&Saved::g, s.rows() * spec.hidden, s.compute}};
  }
};

struct Grads {
  View dg, du;  // [R,F], scratch of I; [R,2F]
  static auto slots(const UnitShape& s, const GatedMlpSpec& spec) {
    return std::array{Slot{&Grads::dg, s.rows() * spec.hidden, s.compute},
                      Slot{&Grads::du, s.rows() * 2 * spec.hidden, s.compute}};
  }
};

DenseSpec gate_up_spec(const UnitShape& s, const GatedMlpSpec& spec) {
  return {.name = "gate_up",
          .in = s.width,
          .out = 2 * spec.hidden,
          .std = spec.std,
          .bias = false,
          .matrices = {spec.hidden, spec.hidden},
          .split = DenseSpec::Split::columns};
}
DenseSpec down_spec(const UnitShape& s, const GatedMlpSpec& spec) {
  return {.name = "down",
          .in = spec.hidden,
          .out = s.width,
          .std = spec.residual_std,
          .bias = false,
          .matrices = {s.width},
          .split = DenseSpec::Split::rows};
}

class GatedMlpBranch final : public Branch {
 public:
  GatedMlpBranch(const UnitShape& shape, const GatedMlpSpec& spec, Backend& backend)
      : shape_(shape),
        spec_(spec),
        backend_(backend),
        gate_up_(gate_up_spec(shape, spec), shape.rows(), shape, backend),
        down_(down_spec(shape, spec), shape.rows(), shape, backend) {}

  std::vector<UnitPart*> parts() override { return {&gate_up_, &down_}; }

  void forward(const UnitIo& /*io*/, const BranchMemory& memory, View h, Epilogue last,
               View y) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    gate_up_.forward(h, {}, s.u);
    backend_.run(GatedSilu{.u = s.u, .width = spec_.hidden, .y = s.g});
    if (!y.empty()) down_.forward(s.g, last, y);
  }

  void backward_input(const UnitIo& /*io*/, const BranchMemory& memory, View du, View /*scratch*/,
                      Epilogue last, View dh) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    const Grads g = slots_in<Grads>(memory.grads, shape_, spec_);
    down_.backward_input(du, {}, g.dg);
    backend_.run(GatedSiluInput{.dy = g.dg, .u = s.u, .width = spec_.hidden, .du = g.du});
    if (!dh.empty()) gate_up_.backward_input(g.du, last, dh);
  }

  void backward_weight(const UnitIo& /*io*/, const BranchMemory& memory, View h, View du,
                       std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    down_.backward_weight(s.g, du, gradients);
    gate_up_.backward_weight(h, slots_in<Grads>(memory.grads, shape_, spec_).du, gradients);
  }

 private:
  UnitShape shape_;
  GatedMlpSpec spec_;
  Backend& backend_;
  Dense gate_up_, down_;
};

}  // namespace

BranchPlan gated_mlp_branch(const UnitShape& shape, const GatedMlpSpec& spec) {
  const DenseSpec gate_up = gate_up_spec(shape, spec), down = down_spec(shape, spec);
  const double product = gate_up.flops(shape.rows()) + down.flops(shape.rows());
  BranchPlan plan;
  for (const DenseSpec& dense : {gate_up, down})
    for (ParameterSpec& parameter : dense.parameters()) plan.parameters.push_back(parameter);
  plan.cost = {.forward_flops = product,
               .input_flops = product,
               .weight_flops = product,
               .saved_bytes = slot_bytes<Saved>(shape, spec),
               .grad_bytes = slot_bytes<Grads>(shape, spec),
               .again_flops = gate_up.flops(shape.rows()),
               .model_flops = product,
               .forward_moved = shape.moved(3 * spec.hidden),
               .input_moved = shape.moved(6 * spec.hidden),
               .split = {.parts = spec.hidden}};
  plan.make = [shape, spec](Backend& backend) {
    return std::make_unique<GatedMlpBranch>(shape, spec, backend);
  };
  plan.describe = [shape, spec](GraphBuilder& graph, const std::string& x) {
    const std::vector<std::string> u = graph.add_many(
        "Split", 2,
        {gate_up_spec(shape, spec).describe(graph, x), graph.indices({spec.hidden, spec.hidden})},
        {{"axis", std::int64_t{-1}}});
    const std::string silu = graph.add("Mul", {u[0], graph.add("Sigmoid", {u[0]})});
    return down_spec(shape, spec).describe(graph, graph.add("Mul", {silu, u[1]}));
  };
  return plan;
}

}  // namespace concertina
