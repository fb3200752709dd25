// A model's inference as a graph of operators, for what runs or writes it elsewhere.
// Invariant: a pure value without weights: a tensor says where its values come from. Operators,
// their attributes and their order of inputs are those of ONNX's opset 17; nothing here depends on
// that library.
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

/// An extent: a number, or the name of an axis that every run of the graph chooses.
using GraphExtent = std::variant<std::int64_t, std::string>;

/// An input or an output of the whole graph.
struct GraphValue {
  std::string name;
  GraphType type = GraphType::f32;
  std::vector<GraphExtent> shape;
};

/// A value that no run changes.
struct GraphTensor {
  std::string name;
  GraphType type = GraphType::f32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  /// The model's tensor that has the values: "003.mlp/up.weight", or a shared name; empty: `floats`
  /// or `integers` are the values.
  std::string parameter;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  std::int64_t count() const;
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
  std::vector<GraphNode> nodes;  // each after those whose outputs it reads
};

// The axes that a run chooses, and the inputs, as exporters of Hugging Face models name them.
inline constexpr std::string_view kBatchAxis = "batch_size", kSequenceAxis = "sequence_length";

/// Builds a graph node by node. A value is known by its name.
class GraphBuilder {
 public:
  using Attributes = std::map<std::string, GraphAttribute>;

  /// All that is added from now on describes `unit`, which outlives the builder.
  void enter(const UnitSpec& unit) { unit_ = &unit; }

  /// An input [batch_size, sequence_length] of whole numbers: "input_ids", "position_ids", ...
  std::string tokens_input(std::string_view name);
  /// An input [batch_size, extents...] of numbers.
  std::string image_input(std::string_view name, std::vector<std::int64_t> extents);
  /// The parameter of this name of the unit that is described.
  std::string parameter(std::string_view name);
  /// Constants; equal ones are the same tensor.
  std::string number(float value);
  std::string index(std::int64_t value);
  std::string indices(std::vector<std::int64_t> values);
  std::string table(std::string_view name, std::vector<std::int64_t> shape,
                    std::vector<float> values);

  /// Adds an operator, and returns its one output.
  std::string add(std::string_view op, std::vector<std::string> inputs, Attributes attributes = {});
  /// The same for an operator with `outputs` outputs.
  std::vector<std::string> add_many(std::string_view op, std::size_t outputs,
                                    std::vector<std::string> inputs, Attributes attributes = {});
  /// The value that `make` builds, once for the whole graph.
  template <class Make>
  std::string once(std::string_view key, const Make& make) {
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    const UnitSpec* unit = std::exchange(unit_, nullptr);
    std::string value = make();
    unit_ = unit;
    return made_.emplace(key, std::move(value)).first->second;
  }

  /// `value`, which a node has made and none has read, is the graph's output `name`.
  void output(std::string_view name, const std::string& value, std::vector<GraphExtent> shape);

  Graph build() &&;

 private:
  std::string add_tensor(GraphTensor tensor);

  Graph graph_;
  const UnitSpec* unit_ = nullptr;  // null: what several units share
  std::map<std::string, std::string, std::less<>> made_;
  std::map<std::string, int, std::less<>> counts_;  // of nodes, by name without a number
};

}  // namespace concertina
