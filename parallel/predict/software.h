// A training program, as far as neither a layout nor a unit's own costs say it: bytes per
// parameter, where its ranks lie, what overlaps, what its kernels keep. Published tables were
// measured with others than this one. Invariant: plain values, one entry per program.
#pragma once

#include <string_view>

namespace concertina {

/// Where a program may cut a model into stages.
enum class Cuts {
  units,   // between any two units, balanced by their FLOPs
  layers,  // equal numbers of layers; or embedding and head count as a layer each (Megatron's
           // --account-for-embedding-in-pipeline-split and --account-for-loss-in-...)
  even,    // as `layers`, else as even as the layers go (DeepSpeed's type:transformer)
};

/// Bytes of a parameter: its working copy, its gradient, and on top of these its master copy and
/// AdamW's moments.
struct ParameterBytes {
  double weight = 4, gradient = 4, optimizer = 8;
};

struct Software {
  std::string_view name, about;
  ParameterBytes in_32{}, in_16{2, 2, 12};  // where activations have as many bits
  bool sums_by_tree =
      false;  // gradients: a buffer for each level of the replica's part of the tree
  double received_bytes = 0;     // gradients of other replicas, each as long as it is being added
  bool sharded = false;          // the optimizer's bytes over the replicas (ZeRO-1)
  bool overlaps = false;         // reduction starts within the last backward; transfers overlap
  bool pipeline_inside = false;  // neighbours of a pipeline are nearer than replicas
  /// Kernels of 2021: attention computes what a mask hides and keeps its scores (s^2 per head) and
  /// what dropout makes of them, each dropout keeps a mask, logits and their gradient are fp32.
  /// Full recomputation is of whole layers, of which only the input is kept.
  bool unfused = false;
  Cuts cuts = Cuts::units;
};

/// Throws Error{bad_input} that lists the names for an unknown one.
const Software& find_software(std::string_view name);

}  // namespace concertina
