#include "experiments/planner/software.h"

#include <array>

#include "core/registry.h"

namespace concertina {
namespace {

constexpr std::array kSoftware = {
    Entry<Software>{"concertina",
                    {.name = "concertina",
                     .about = "this program, as if it had tensor parallelism and recomputation: "
                              "fp32 weights, gradients and moments, a packed 16-bit copy of the "
                              "weights, room for received gradients, moments sharded over dp; "
                              "transfers and reductions overlap",
                     .weight_bytes_16 = 6,
                     .gradient_bytes_16 = 4,
                     .received_bytes = 4,
                     .optimizer_bytes_16 = 8,
                     .sharded = true,
                     .overlaps = true,
                     .pipeline_inside = true}},
    Entry<Software>{"megatron",
                    {.name = "megatron",
                     .about = "Megatron-LM of 2021: 16-bit weights and gradients, fp32 master "
                              "weights and moments on each replica, blocking transfers, "
                              "all-reduce after the last backward, equal numbers of layers",
                     .keeps_scores = true,
                     .keeps_outputs = true,
                     .equal_layers = true}},
    Entry<Software>{"deepspeed",
                    {.name = "deepspeed",
                     .about = "Megatron-DeepSpeed of 2022: as megatron, with the optimizer's "
                              "state sharded over dp (ZeRO-1)",
                     .sharded = true,
                     .keeps_scores = true,
                     .keeps_outputs = true,
                     .equal_layers = true}}};

}  // namespace

const Software& find_software(std::string_view name) {
  return lookup(std::span<const Entry<Software>>(kSoftware), name, "program", "--software");
}

}  // namespace concertina
