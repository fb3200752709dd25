#include "io/export/onnx_model.h"

#include <fmt/format.h>
#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include "core/error.h"

namespace concertina {
namespace {

constexpr std::int64_t kOpset = 17, kIrVersion = 8;

int onnx_type(GraphType type) {
  return type == GraphType::f32 ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT64;
}

void fill_value(const GraphValue& value, onnx::ValueInfoProto& out) {
  out.set_name(value.name);
  onnx::TypeProto::Tensor& type = *out.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type(value.type));
  for (const GraphExtent& extent : value.shape) {
    auto& dimension = *type.mutable_shape()->add_dim();
    if (const auto* name = std::get_if<std::string>(&extent))
      dimension.set_dim_param(*name);
    else
      dimension.set_dim_value(std::get<std::int64_t>(extent));
  }
}

void fill_attribute(const GraphAttribute& value, onnx::AttributeProto& out) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    out.set_type(onnx::AttributeProto::INT);
    out.set_i(*integer);
  } else if (const auto* number = std::get_if<float>(&value)) {
    out.set_type(onnx::AttributeProto::FLOAT);
    out.set_f(*number);
  } else {
    out.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t each : std::get<std::vector<std::int64_t>>(value)) out.add_ints(each);
  }
}

void fill_node(const GraphNode& node, onnx::NodeProto& out) {
  for (const std::string& input : node.inputs) out.add_input(input);
  for (const std::string& output : node.outputs) out.add_output(output);
  out.set_name(node.name);
  out.set_op_type(node.op);
  for (const auto& [name, value] : node.attributes) {
    onnx::AttributeProto& attribute = *out.add_attribute();
    attribute.set_name(name);
    fill_attribute(value, attribute);
  }
}

}  // namespace

onnx::ModelProto onnx_model(const Graph& graph) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("concertina");
  model.add_opset_import()->set_version(kOpset);
  onnx::GraphProto& out = *model.mutable_graph();
  out.set_name("main_graph");
  for (const GraphNode& node : graph.nodes) fill_node(node, *out.add_node());
  for (const GraphTensor& tensor : graph.tensors) {
    onnx::TensorProto& initializer = *out.add_initializer();
    initializer.set_name(tensor.name);
    initializer.set_data_type(onnx_type(tensor.type));
    for (const std::int64_t extent : tensor.shape) initializer.add_dims(extent);
    if (tensor.type == GraphType::i64)
      initializer.set_raw_data(tensor.integers.data(), tensor.integers.size() * 8);
  }
  for (const GraphValue& input : graph.inputs) fill_value(input, *out.add_input());
  for (const GraphValue& output : graph.outputs) fill_value(output, *out.add_output());
  return model;
}

void infer_onnx_shapes(onnx::ModelProto inferred, const std::string& where) {
  try {
    const onnx::ShapeInferenceOptions strict(/*check_type=*/true, /*strict_mode=*/1,
                                             /*data_prop=*/true);
    onnx::shape_inference::InferShapes(inferred, onnx::OpSchemaRegistry::Instance(), strict);
  } catch (const std::exception& error) {
    throw_failure(fmt::format("ONNX's shape inference refuses the model: {}", error.what()), where);
  }
}

void check_onnx_file(const std::string& path) {
  try {
    onnx::checker::check_model(path);
  } catch (const std::exception& error) {
    throw_failure(fmt::format("ONNX's checker refuses the model: {}", error.what()), path);
  }
}

}  // namespace concertina
