// What a training program does that a layout does not say: bytes per parameter, where its ranks
// lie, what overlaps. Published tables were measured with others than this one.
// Invariant: plain values, one entry per program.
#pragma once

#include <string_view>

namespace concertina {

struct Software {
  std::string_view name, about;
  /// What the working copy of a weight takes, in fp32 and in the 16-bit formats.
  double weight_bytes_32 = 4, weight_bytes_16 = 2;
  double gradient_bytes_32 = 4, gradient_bytes_16 = 2;
  double received_bytes = 0;  // gradients of other replicas, each as long as it is being added
  /// What master copies and AdamW's moments of a weight take, on top of the working copy.
  double optimizer_bytes_32 = 8, optimizer_bytes_16 = 12;
  bool sharded = false;          // the optimizer's bytes over the replicas (ZeRO-1)
  bool overlaps = false;         // reduction starts within the last backward; transfers overlap
  bool keeps_scores = false;     // attention writes its scores (s^2 per head) to memory
  bool keeps_outputs = false;    // a stage's output waits for its gradient, unlike its copy sent on
  bool pipeline_inside = false;  // neighbours of a pipeline are nearer than replicas
  bool equal_layers = false;     // each stage has the same number of layers
};

/// Throws Error{bad_input} that lists the names for an unknown one.
const Software& find_software(std::string_view name);

}  // namespace concertina
