#include "experiments/commands/checkpoint/graph_json.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

template <class... T>
Json json_of(const std::variant<T...>& value) {
  return std::visit([](const auto& one) { return Json(one); }, value);
}

const char* type_name(GraphType type) {
  return type == GraphType::f32 ? "float32" : "int64";
}

Json values_json(const std::vector<GraphValue>& values) {
  Json list = Json::array();
  for (const GraphValue& value : values) {
    Json shape = Json::array();
    for (const GraphExtent& extent : value.shape) shape.push_back(json_of(extent));
    list.push_back({{"name", value.name}, {"type", type_name(value.type)}, {"shape", shape}});
  }
  return list;
}

Json tensor_json(const GraphTensor& tensor) {
  Json json = {{"name", tensor.name}, {"type", type_name(tensor.type)}, {"shape", tensor.shape}};
  if (!tensor.parameter.empty())
    json["parameter"] = tensor.parameter;
  else if (tensor.type == GraphType::f32)
    json["values"] = tensor.floats;
  else
    json["values"] = tensor.integers;
  return json;
}

Json node_json(const GraphNode& node) {
  Json json = {{"name", node.name},
               {"op", node.op},
               {"inputs", node.inputs},
               {"outputs", node.outputs},
               {"attributes", Json::object()}};
  for (const auto& [name, value] : node.attributes) json["attributes"][name] = json_of(value);
  return json;
}

}  // namespace

nlohmann::ordered_json graph_json(const Graph& graph) {
  Json json = {{"inputs", values_json(graph.inputs)},
               {"outputs", values_json(graph.outputs)},
               {"tensors", Json::array()},
               {"nodes", Json::array()}};
  for (const GraphTensor& tensor : graph.tensors) json["tensors"].push_back(tensor_json(tensor));
  for (const GraphNode& node : graph.nodes) json["nodes"].push_back(node_json(node));
  return json;
}

}  // namespace concertina
