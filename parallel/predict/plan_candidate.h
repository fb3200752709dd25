// The layouts considered by a search: tensor-parallel group x pipeline x replicas x chunks x
// schedule x microbatch size x recomputation.
// Invariant: pure; every combination in the space that the batch, the model and the schedule allow
// occurs once, in a fixed order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_spec.h"
#include "parallel/plan/partition.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// Where a program may split a model into stages.
enum class Cuts {
  units,   // between any two units, balanced by their FLOPs
  layers,  // equal numbers of layers, where embedding and head may count as a layer each
           // (Megatron's --account-for-embedding-in-pipeline-split and --account-for-loss-in-...)
  even,    // as `layers` if possible, otherwise as even as possible (DeepSpeed's type:transformer)
};

/// Bytes per parameter: its working copy, its gradient, and its master copy and AdamW moments.
struct ParameterBytes {
  double weight = 4, gradient = 4, optimizer = 8;
};

struct Software {
  std::string_view name, about;
  ParameterBytes in_32{}, in_16{2, 2, 12};  // with activations of 32 and 16 bits
  bool sums_by_tree =
      false;  // gradients take one buffer for each level of the replica's part of the tree
  double received_bytes = 0;     // gradients of other replicas, each until it is added
  bool sharded = false;          // optimizer state is sharded over the replicas (ZeRO-1)
  bool overlaps = false;         // reduction starts within the last backward; transfers overlap
  bool pipeline_inside = false;  // ranks of a pipeline are closer than replicas
  /// Kernels of 2021: attention computes masked values and keeps its scores (s^2 per head) and
  /// their dropout output, each dropout keeps a mask, and logits and their gradient are fp32. Full
  /// recomputation covers whole layers and keeps only their input.
  bool unfused = false;
  Cuts cuts = Cuts::units;
};

/// Throws Error{bad_input} with the list of names if `name` is unknown.
const Software& find_software(std::string_view name);

/// The part that the backward pass recomputes: nothing; attention, where this program recomputes
/// the unit and others the scores and everything that depends on them (Korthikanti et al. 2022); or
/// all layers.
enum class Recompute { none, selective, full };
std::string_view name_of(Recompute recompute);

/// The input of a search: model, batch, machine and software, which are independent of the layout.
struct PlanProblem {
  ModelSpec model;  // for microbatches of one sample, without recomputation
  int batch = 1;    // samples per step
  Software software;
  MachineModel machine;
  double memory = 0;  // bytes per device

  int layers() const { return static_cast<int>(model.layer_ends.size()); }
  /// Bytes per element of an activation.
  double element() const { return static_cast<double>(size_of(model.activation)); }
  const ParameterBytes& bytes() const {
    return model.activation == DType::bf16 ? software.in_16 : software.in_32;
  }
};

struct PlanCandidate {
  int tp = 1, pp = 1, dp = 1;  // a group of tp devices is one rank
  int chunks = 1;
  std::string_view schedule = "1f1b";  // name in the registry
  int samples = 1;                     // per microbatch
  Recompute recompute = Recompute::none;
  bool operator==(const PlanCandidate&) const = default;

  int world() const { return tp * pp * dp; }
  int stages() const { return pp * chunks; }
  /// Number of microbatches per pipeline in a step.
  int microbatches(int batch) const { return batch / samples / dp; }
};

/// Returns text such as "tp8 pp4 dp4 1f1b, microbatches of 2, full recomputation".
std::string to_text(const PlanCandidate& candidate);

/// The layouts to try; an empty list allows everything that the model, batch and machine allow.
struct SearchSpace {
  int world = 1;
  int ranks_per_host = 0;  // limits tp; 0: all on one host
  std::vector<int> tp{}, pp{}, samples{}, chunks{};
  std::vector<std::string> schedules{};
  std::vector<Recompute> recompute{};
};

/// Returns the value named by --recompute; throws Error{bad_input} if the name is unknown.
Recompute find_recompute(std::string_view name);

/// Throws Error{bad_input} if there is no valid combination.
std::vector<PlanCandidate> plan_candidates(const PlanProblem& problem, const SearchSpace& space);

/// Returns the units of each stage if the software splits between layers.
std::vector<UnitRange> layer_cuts(const PlanProblem& problem, int stages);

}  // namespace concertina
