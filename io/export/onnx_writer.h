// Writes a graph with its weights as an ONNX model: opset 17, IR version 8, fp32.
// Invariants: the same graph, weights and facts are the same bytes; a reader sees a whole model or
// none; no more than one tensor is in memory where the weights have a file of their own.
//
// The weights lie in the model's own file, or above OnnxOptions::inline_limit in FILE_data beside
// it, each at a multiple of 4096 bytes, but for tensors under 1 KiB.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "core/graph.h"

namespace concertina {

struct OnnxOptions {
  /// Bytes of weights that the model's own file holds at most; protobuf ends at 2 GiB.
  std::uint64_t inline_limit = std::uint64_t{256} << 20;
  /// Become metadata_props, beside "weights.sha256".
  std::map<std::string, std::string> facts{};
};

/// The files that were written.
struct OnnxFiles {
  std::string model;  // path
  std::string data;   // path; empty: the model holds its weights
  std::uint64_t bytes = 0, data_bytes = 0;
  /// The hash of all weights as little-endian fp32, one tensor after the other in the graph's
  /// order.
  std::string weights_sha256;
};

/// Whether this program was built with libonnx.
bool onnx_available();

/// Reads a whole tensor of the model.
using TensorReader = std::function<void(const std::string& name, std::span<float> values)>;

/// Writes `graph` to `path`, in place of what is there, after ONNX's checker and its shape
/// inference have passed it. Throws Error{bad_input} where the program has no libonnx; a failure
/// where a file cannot be written or the checker refuses the model.
OnnxFiles write_onnx(const Graph& graph, const TensorReader& read, const std::string& path,
                     const OnnxOptions& options = {});

}  // namespace concertina
