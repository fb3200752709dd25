#include "models/units/dense.h"

#include "core/error.h"

namespace concertina {
namespace {

using Extents = std::vector<std::int64_t>;

std::string bias_name(const DenseSpec& spec) {
  return (spec.shared_table ? "logits" : spec.name) + ".bias";
}

}  // namespace

std::vector<ParameterSpec> DenseSpec::parameters() const {
  const Init init{Init::Kind::normal, std};
  std::vector<ParameterSpec> list;
  if (shared_table)
    list.push_back({name, {out, in}, true, init, name});
  else
    list.push_back({name + ".weight", {in, out}, true, init, "", matrices});
  list.back().split = split != Split::none;
  if (bias) list.push_back({bias_name(*this), {out}, false, {Init::Kind::zeros}, ""});
  list.back().split = split == Split::columns || (!bias && split == Split::rows);
  append(list, adapter_parameters(adapter, name, in, out));
  return list;
}

std::string DenseSpec::describe(GraphBuilder& graph, const std::string& x) const {
  const std::string weight =
      shared_table ? graph.add("Transpose", {graph.parameter(name)}, {{"perm", Extents{1, 0}}})
                   : graph.parameter(name + ".weight");
  const std::string y = graph.add("MatMul", {x, weight});
  return bias ? graph.add("Add", {y, graph.parameter(bias_name(*this))}) : y;
}

Dense::Dense(const DenseSpec& spec, std::int64_t rows, const UnitShape& shape, Backend& backend)
    : backend_(backend),
      biased_(spec.bias),
      linear_(backend.linear({rows, spec.in, spec.out, spec.shared_table, shape.compute,
                              shape.products, shape.capacity > 0})) {
  if (spec.adapter.rank > 0) adapter_.emplace(spec.adapter, linear_->shape(), backend);
}

std::size_t Dense::packed_bytes() const {
  const std::size_t bytes = linear_->packed_bytes();
  return adapter_ ? align_up(bytes) + adapter_->packed_bytes() : bytes;
}

void Dense::attach(std::span<const View> weights, void* packed) {
  weight_ = weights[kWeight];
  if (biased_) bias_ = weights[kBias];
  packed_ = packed;
  if (adapter_)
    adapter_->attach(weights[first_adapted()], weights[first_adapted() + 1],
                     static_cast<std::byte*>(packed) + align_up(linear_->packed_bytes()));
}

void Dense::pack(void* scratch) {
  const View weight = adapter_ ? adapter_->merge(weight_, scratch) : weight_;
  backend_.run(PackWeights{.map = *linear_, .weight = weight, .packed = packed_});
}

void Dense::forward(View x, Epilogue epilogue, View y) const {
  backend_.run(LinearForward{
      .map = *linear_, .x = x, .packed = packed_, .bias = bias_, .epilogue = epilogue, .y = y});
}

void Dense::backward_input(View dy, Epilogue epilogue, View dx) const {
  backend_.run(
      LinearInput{.map = *linear_, .dy = dy, .packed = packed_, .epilogue = epilogue, .dx = dx});
}

void Dense::backward_weight(View x, View dy, std::span<const UnitGradient> gradients,
                            View scratch) const {
  if (adapter_)
    adapter_->backward_weight(x, dy, scratch, own(gradients, first_adapted()),
                              own(gradients, first_adapted() + 1));
  const UnitGradient& weight = own(gradients, kWeight);
  const UnitGradient bias = biased_ ? own(gradients, kBias) : UnitGradient{};
  const UnitGradient& any = weight.view.empty() ? bias : weight;
  if (any.view.empty()) return;  // frozen
  CONCERTINA_CHECK(bias.view.empty() || bias.accumulate == any.accumulate,
                   "weight and bias must start a gradient-sum leaf at the same microbatch");
  backend_.run(LinearWeight{.map = *linear_,
                            .x = x,
                            .dy = dy,
                            .dweight = weight.view,
                            .dbias = bias.view,
                            .accumulate = any.accumulate});
}

}  // namespace concertina
