// A model's inference as a graph of operators, for programs that run or export it.
// Invariant: a plain value without weights; tensors refer to their values. Operators, attributes
// and input orders follow ONNX opset 17, but nothing here depends on the ONNX library.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

enum class GraphType { f32, i64 };

/// An extent: a number, or the name of an axis whose size is chosen at run time.
using GraphExtent = std::variant<std::int64_t, std::string>;

/// An input or output of the whole graph.
struct GraphValue {
  std::string name;
  GraphType type = GraphType::f32;
  std::vector<GraphExtent> shape;
};

/// A constant value.
struct GraphTensor {
  std::string name;
  GraphType type = GraphType::f32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  /// The model tensor with the values: "003.mlp/up.weight", or a shared name. If empty, the values
  /// are in `floats` or `integers`.
  std::string parameter;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  std::int64_t count() const { return elements_of(shape); }
  std::uint64_t bytes() const;
};

using GraphAttribute = std::variant<std::int64_t, float, std::vector<std::int64_t>>;

struct GraphNode {
  std::string name, op;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, GraphAttribute> attributes;
};

struct Graph {
  std::vector<GraphValue> inputs, outputs;
  std::vector<GraphTensor> tensors;
  std::vector<GraphNode> nodes;  // in topological order
};

// Dynamic axes and inputs, with the names that Hugging Face exporters use.
inline constexpr std::string_view kBatchAxis = "batch_size", kSequenceAxis = "sequence_length";

/// Builds a graph node by node. Values are identified by name.
class GraphBuilder {
 public:
  using Attributes = std::map<std::string, GraphAttribute>;

  /// Makes all subsequent nodes describe `unit`, which must outlive the builder.
  void enter(const UnitSpec& unit) { unit_ = &unit; }

  /// Returns an integer input [batch_size, sequence_length]: "input_ids", "position_ids", ...
  std::string tokens_input(std::string_view name);
  /// Returns a floating-point input [batch_size, extents...].
  std::string image_input(std::string_view name, std::vector<std::int64_t> extents);
  /// Returns the parameter with this name of the current unit.
  std::string parameter(std::string_view name);
  /// Adds a constant and returns its name. Equal constants share a tensor.
  std::string number(float value);
  std::string index(std::int64_t value);
  std::string indices(std::vector<std::int64_t> values);
  std::string table(std::string_view name, std::vector<std::int64_t> shape,
                    std::vector<float> values);

  /// Adds an operator and returns its output.
  std::string add(std::string_view op, std::vector<std::string> inputs, Attributes attributes = {});
  /// Adds an operator with `outputs` outputs.
  std::vector<std::string> add_many(std::string_view op, std::size_t outputs,
                                    std::vector<std::string> inputs, Attributes attributes = {});
  /// Returns the value that `make` builds on the first call with this key.
  template <class Make>
  std::string once(std::string_view key, const Make& make) {
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    const UnitSpec* unit = std::exchange(unit_, nullptr);
    std::string value = make();
    unit_ = unit;
    return made_.emplace(key, std::move(value)).first->second;
  }

  /// Makes `value` the graph output `name`. It must come from a node, and no node may have read it.
  void output(std::string_view name, const std::string& value, std::vector<GraphExtent> shape);

  Graph build() &&;

 private:
  std::string add_tensor(GraphTensor tensor);

  Graph graph_;
  const UnitSpec* unit_ = nullptr;  // null: shared by several units
  std::map<std::string, std::string, std::less<>> made_;
  std::map<std::string, int, std::less<>> counts_;  // number of nodes by base name
};

}  // namespace concertina
