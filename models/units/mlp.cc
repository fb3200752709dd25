#include "models/units/mlp.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/units/dense.h"
#include "models/units/graphs.h"
#include "models/units/slots.h"

namespace concertina {
namespace {

/// Returns the number of columns of the first map.
std::int64_t up_columns(const MlpSpec& spec) {
  return spec.gated ? 2 * spec.hidden : spec.hidden;
}

/// [R,F], the input of the last map; and what the activation's gradient needs: [R,F], or for a
/// gated MLP gate and up [R,2F].
struct Saved {
  View g, u;
  static auto slots(const UnitShape& s, const MlpSpec& spec) {
    return std::array{Slot{&Saved::g, s.rows() * spec.hidden, s.compute},
                      Slot{&Saved::u, s.rows() * up_columns(spec), s.compute}};
  }
};

/// The gradient before the activation, with the columns of u; for a gated MLP also the gradient of
/// g, as scratch in I; and scratch of W.
struct Grads {
  View du, dg, adapter;
  static auto slots(const UnitShape& s, const MlpSpec& spec) {
    return std::array{Slot{&Grads::du, s.rows() * up_columns(spec), s.compute},
                      Slot{&Grads::dg, spec.gated ? s.rows() * spec.hidden : 0, s.compute},
                      Slot{&Grads::adapter, s.lora.scratch({"up", "down"}, s.rows()), s.compute}};
  }
};

DenseSpec up_spec(const UnitShape& s, const MlpSpec& spec) {
  return {.name = spec.gated ? "gate_up" : "up",
          .in = s.width,
          .out = up_columns(spec),
          .std = spec.std,
          .bias = !spec.gated,
          .matrices = std::vector(spec.gated ? 2 : 1, spec.hidden),
          .split = DenseSpec::Split::columns,
          .adapter = s.lora.of("up")};
}
DenseSpec down_spec(const UnitShape& s, const MlpSpec& spec) {
  return {.name = "down",
          .in = spec.hidden,
          .out = s.width,
          .std = spec.residual_std,
          .bias = !spec.gated,
          .matrices = {s.width},
          .split = DenseSpec::Split::rows,
          .adapter = s.lora.of("down")};
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
        backend_(backend),
        up_(up_spec(shape, spec), shape.rows(), shape, backend),
        down_(down_spec(shape, spec), shape.rows(), shape, backend) {}

  std::vector<UnitPart*> parts() override { return {&up_, &down_}; }

  void forward(const UnitIo& /*io*/, const BranchMemory& memory, View h, Epilogue last,
               View y) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    if (spec_.gated) {
      up_.forward(h, {}, s.u);
      backend_.run(GatedSilu{.u = s.u, .width = spec_.hidden, .y = s.g});
    } else {
      up_.forward(h, {spec_.activation, s.u}, s.g);
    }
    if (!y.empty()) down_.forward(s.g, last, y);
  }

  void backward_input(const UnitIo& /*io*/, const BranchMemory& memory, View du, View /*scratch*/,
                      Epilogue last, View dh) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    const Grads g = slots_in<Grads>(memory.grads, shape_, spec_);
    if (spec_.gated) {
      down_.backward_input(du, {}, g.dg);
      backend_.run(GatedSiluInput{.dy = g.dg, .u = s.u, .width = spec_.hidden, .du = g.du});
    } else {
      down_.backward_input(du, {spec_.activation, s.u}, g.du);
    }
    if (!dh.empty()) up_.backward_input(g.du, last, dh);
  }

  void backward_weight(const UnitIo& /*io*/, const BranchMemory& memory, View h, View du,
                       std::span<const UnitGradient> gradients) override {
    const Saved s = slots_in<Saved>(memory.saved, shape_, spec_);
    const Grads g = slots_in<Grads>(memory.grads, shape_, spec_);
    down_.backward_weight(s.g, du, gradients, g.adapter);
    up_.backward_weight(h, g.du, gradients, g.adapter);
  }

 private:
  UnitShape shape_;
  MlpSpec spec_;
  Backend& backend_;
  Dense up_, down_;
};

/// Returns [...,hidden] for u[...,2 hidden].
std::string describe_gate(GraphBuilder& graph, std::int64_t hidden, const std::string& u) {
  const std::vector<std::string> halves = graph.add_many(
      "Split", 2, {u, graph.indices({hidden, hidden})}, {{"axis", std::int64_t{-1}}});
  const std::string silu = graph.add("Mul", {halves[0], graph.add("Sigmoid", {halves[0]})});
  return graph.add("Mul", {silu, halves[1]});
}

}  // namespace

std::vector<std::string_view> activation_names() {
  std::vector<std::string_view> names;
  for (const ActivationName& one : kActivations) names.push_back(one.name);
  return names;
}

Epilogue::Kind activation_of(std::string_view name) {
  const auto found = std::ranges::find(kActivations, name, &ActivationName::name);
  CONCERTINA_CHECK(found != kActivations.end(), "unknown activation {}", name);
  return found->kind;
}

BranchPlan mlp_branch(const UnitShape& shape, const MlpSpec& spec) {
  BranchPlan plan;
  double product = 0, adapters = 0;
  for (const DenseSpec& dense : {up_spec(shape, spec), down_spec(shape, spec)}) {
    append(plan.parameters, dense.parameters());
    product += dense.flops(shape.rows());
    adapters += dense.adapter_flops(shape.rows());
  }
  const std::int64_t moved = spec.hidden + up_columns(spec);
  plan.cost = {.forward_flops = product,
               .input_flops = product,
               .weight_flops = product,
               .saved_bytes = slot_bytes<Saved>(shape, spec),
               .grad_bytes = slot_bytes<Grads>(shape, spec),
               .recompute_flops = up_spec(shape, spec).flops(shape.rows()),
               .model_flops = product,
               .adapter_flops = adapters,
               .forward_moved = shape.moved(moved),
               .input_moved = shape.moved(2 * moved),
               .split = {.parts = spec.hidden}};
  plan.make = [shape, spec](Backend& backend) {
    return std::make_unique<MlpBranch>(shape, spec, backend);
  };
  plan.describe = [shape, spec](GraphBuilder& graph, const std::string& x) {
    const std::string u = up_spec(shape, spec).describe(graph, x);
    return down_spec(shape, spec)
        .describe(graph, spec.gated ? describe_gate(graph, spec.hidden, u)
                                    : describe_activation(graph, spec.activation, u));
  };
  return plan;
}

}  // namespace concertina
