// The layouts that a search looks at: tensor-parallel group x pipeline x replicas x chunks x
// schedule x size of a microbatch x recomputation.
// Invariant: pure; every combination within the space that the batch, the model and the schedule
// allow is there once, in one order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_spec.h"
#include "parallel/plan/partition.h"
#include "parallel/predict/machine.h"

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

/// The part that the backward pass computes a second time: nothing; attention, of which this
/// program recomputes the unit, and others the scores and all that follows from them (Korthikanti
/// et al. 2022); or all layers.
enum class Recompute { none, selective, full };
std::string_view name_of(Recompute recompute);

/// The question of a search: model, batch, machine and software, which no layout changes.
struct PlanProblem {
  ModelSpec model;  // for microbatches of one sample, nothing recomputed
  int batch = 1;    // samples of a step
  Software software;
  MachineModel machine;
  double memory = 0;  // bytes of one device

  int layers() const { return static_cast<int>(model.layer_ends.size()); }
  /// Bytes of an element of an activation, and of a parameter.
  double element() const { return static_cast<double>(size_of(model.activation)); }
  const ParameterBytes& bytes() const {
    return model.activation == DType::bf16 ? software.in_16 : software.in_32;
  }
};

struct PlanCandidate {
  int tp = 1, pp = 1, dp = 1;  // a group of tp devices works as one rank
  int chunks = 1;
  std::string_view schedule = "1f1b";  // of the registry
  int samples = 1;                     // of a microbatch
  Recompute recompute = Recompute::none;
  bool operator==(const PlanCandidate&) const = default;

  int world() const { return tp * pp * dp; }
  int stages() const { return pp * chunks; }
  /// The microbatches of one pipeline in a step.
  int microbatches(int batch) const { return batch / samples / dp; }
};

/// "tp8 pp4 dp4 1f1b, microbatches of 2, full recomputation".
std::string to_text(const PlanCandidate& candidate);

/// The layouts to try; an empty list is all that the model, the batch and the machine allow.
struct SearchSpace {
  int world = 1;
  int ranks_per_host = 0;  // bounds tp; 0: all on one host
  std::vector<int> tp{}, pp{}, samples{}, chunks{};
  std::vector<std::string> schedules{};
  std::vector<Recompute> recompute{};
};

/// The words of --tp, --schedules and so on; throws Error{bad_input} for an unknown one.
Recompute find_recompute(std::string_view name);

/// Throws Error{bad_input} if nothing divides as it must.
std::vector<PlanCandidate> plan_candidates(const PlanProblem& problem, const SearchSpace& space);

/// The units of each stage, where the software cuts between layers.
std::vector<UnitRange> layer_cuts(const PlanProblem& problem, int stages);

}  // namespace concertina
