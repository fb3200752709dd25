// The memory of the fullest rank of a layout, modelled: what cannot be run here is planned by
// published formulas (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
// Transformer Models", section 4, without sequence parallelism; 16-bit activations).
// Invariant: pure. One device of each tensor-parallel group; all devices of a group are alike.
#pragma once

#include "experiments/config/config.h"
#include "experiments/costs/machine_model.h"
#include "experiments/planner/plan_candidate.h"

namespace concertina {

/// Bytes of one device, by purpose.
struct PlanMemory {
  double weights = 0;  // and gradients
  double optimizer = 0;
  double activations = 0;  // of all microbatches under way, and what one layer needs meanwhile
  double reserved = 0;
  double total() const { return weights + optimizer + activations + reserved; }
};

/// Activations that one layer keeps of one microbatch on one device of `tp`:
/// s b h (10 + 24/tp + 5 a s/(h tp)) bytes; without its last term where attention is recomputed or
/// keeps no scores; 2 s b h, the layer's input, where all is recomputed. Twice that in fp32.
double activation_bytes(const ModelSection& model, const Software& software, int tp, int samples,
                        Recompute recompute, bool is_16_bit);

/// Parameters: 12 h^2 (1 + 13/(12 h)) of a layer, V h + s h of the embedding; one device's part.
double layer_parameters(const ModelSection& model, int tp);
double embedding_parameters(const ModelSection& model, int tp);

/// Layers by stage of a pipeline (PlanCandidate::stages()), in order: all alike where the software
/// has it so, else as even as the head, which costs `head_layers` layers, allows.
std::vector<int> layers_by_stage(int layers, int stages, bool equal, double head_layers);

/// `peak`: by rank of a pipeline, the most microbatches of stages that it keeps at once.
/// `layers`: layers_by_stage(). The largest rank's.
PlanMemory plan_memory_of(const RunConfig& config, const Software& software,
                          const MachineModel& machine, const PlanCandidate& candidate,
                          const std::vector<int>& layers, const std::vector<int>& peak);

/// The most microbatches of stages that each rank keeps, as the schedule promises; 1F1B's by rank.
/// Empty: it promises nothing for these.
std::vector<int> promised_peaks(const PlanCandidate& candidate, int microbatches);

/// Whether activations and products are of 16 bits (or fewer).
bool is_16_bit(const RunConfig& config);

}  // namespace concertina
