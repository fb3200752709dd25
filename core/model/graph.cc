#include "core/model/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace concertina {

std::uint64_t GraphTensor::bytes() const {
  return static_cast<std::uint64_t>(count()) * (type == GraphType::f32 ? 4 : 8);
}

std::string GraphBuilder::tokens_input(std::string_view name) {
  return once(name, [&] {
    graph_.inputs.push_back(
        {std::string(name), GraphType::i64, {std::string(kBatchAxis), std::string(kSequenceAxis)}});
    return std::string(name);
  });
}

std::string GraphBuilder::image_input(std::string_view name, std::vector<std::int64_t> extents) {
  return once(name, [&] {
    GraphValue value{std::string(name), GraphType::f32, {std::string(kBatchAxis)}};
    value.shape.insert(value.shape.end(), extents.begin(), extents.end());
    graph_.inputs.push_back(std::move(value));
    return std::string(name);
  });
}

std::string GraphBuilder::add_tensor(GraphTensor tensor) {
  return once(tensor.name, [&] {
    graph_.tensors.push_back(tensor);
    return tensor.name;
  });
}

std::string GraphBuilder::parameter(std::string_view name) {
  CONCERTINA_CHECK(unit_ != nullptr, "parameter {} requested outside of a unit", name);
  const auto found = std::ranges::find(unit_->parameters, name, &ParameterSpec::name);
  CONCERTINA_CHECK(found != unit_->parameters.end(), "unit {} has no parameter {}", unit_->name,
                   name);
  GraphTensor tensor;
  tensor.parameter = found->shared.empty() ? unit_->name + "/" + found->name : found->shared;
  tensor.name = tensor.parameter;
  tensor.shape = found->shape;
  return add_tensor(std::move(tensor));
}

std::string GraphBuilder::number(float value) {
  GraphTensor tensor;
  tensor.name = fmt::format("number {}", value);
  tensor.floats = {value};
  return add_tensor(std::move(tensor));
}

std::string GraphBuilder::index(std::int64_t value) {
  GraphTensor tensor;
  tensor.name = fmt::format("index {}", value);
  tensor.type = GraphType::i64;
  tensor.integers = {value};
  return add_tensor(std::move(tensor));
}

std::string GraphBuilder::indices(std::vector<std::int64_t> values) {
  GraphTensor tensor;
  tensor.name = fmt::format("indices {}", fmt::join(values, ","));
  tensor.type = GraphType::i64;
  tensor.shape = {std::ssize(values)};
  tensor.integers = std::move(values);
  return add_tensor(std::move(tensor));
}

std::string GraphBuilder::table(std::string_view name, std::vector<std::int64_t> shape,
                                std::vector<float> values) {
  GraphTensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.floats = std::move(values);
  CONCERTINA_CHECK(tensor.count() == std::ssize(tensor.floats), "table {}", name);
  return add_tensor(std::move(tensor));
}

std::string GraphBuilder::add(std::string_view op, std::vector<std::string> inputs,
                              Attributes attributes) {
  return add_many(op, 1, std::move(inputs), std::move(attributes)).front();
}

std::vector<std::string> GraphBuilder::add_many(std::string_view op, std::size_t outputs,
                                                std::vector<std::string> inputs,
                                                Attributes attributes) {
  const std::string base = fmt::format("{}/{}", unit_ == nullptr ? "shared" : unit_->name, op);
  const int before = counts_[base]++;
  GraphNode node;
  node.name = before == 0 ? base : fmt::format("{}_{}", base, before);
  node.op = op;
  node.inputs = std::move(inputs);
  for (std::size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(fmt::format("{}_output_{}", node.name, i));
  node.attributes = std::move(attributes);
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

void GraphBuilder::output(std::string_view name, const std::string& value,
                          std::vector<GraphExtent> shape) {
  const auto node = std::ranges::find_if(graph_.nodes, [&](const GraphNode& one) {
    return std::ranges::find(one.outputs, value) != one.outputs.end();
  });
  CONCERTINA_CHECK(node != graph_.nodes.end(), "output {} belongs to no node", value);
  *std::ranges::find(node->outputs, value) = name;
  graph_.outputs.push_back({std::string(name), GraphType::f32, std::move(shape)});
}

Graph GraphBuilder::build() && {
  // Exporters list inputs in this order, regardless of which unit requested them first.
  constexpr std::array<std::string_view, 5> kOrder{"input_ids", "attention_mask", "token_type_ids",
                                                   "position_ids", "pixel_values"};
  std::ranges::stable_sort(graph_.inputs, {}, [&](const GraphValue& input) {
    return std::ranges::find(kOrder, input.name) - kOrder.begin();
  });
  return std::move(graph_);
}

}  // namespace concertina
