#include "parallel/predict/software.h"

#include <array>

#include "core/registry.h"

namespace concertina {
namespace {

constexpr std::array kSoftware = {
    Entry<Software>{"concertina",
                    {.name = "concertina",
                     .about = "this program, with tensor parallelism if it had it: fp32 weights, "
                              "gradients and moments, a packed 16-bit copy of the weights, room "
                              "for received gradients, moments sharded over dp; transfers and "
                              "reductions overlap",
                     .in_16 = {6, 4, 8},
                     .sums_by_tree = true,
                     .received_bytes = 4,
                     .sharded = true,
                     .overlaps = true,
                     .pipeline_inside = true}},
    Entry<Software>{"megatron",
                    {.name = "megatron",
                     .about = "Megatron-LM of 2021: 16-bit weights and gradients, fp32 master "
                              "weights and moments on each replica, blocking transfers, "
                              "all-reduce after the last backward, stages of equal layers, or "
                              "embedding and head as a layer each",
                     .unfused = true,
                     .cuts = Cuts::layers}},
    Entry<Software>{"deepspeed",
                    {.name = "deepspeed",
                     .about = "Megatron-DeepSpeed of 2022: as megatron, with the optimizer's "
                              "state sharded over dp (ZeRO-1) and stages that may differ by a "
                              "layer",
                     .sharded = true,
                     .unfused = true,
                     .cuts = Cuts::even}}};

}  // namespace

const Software& find_software(std::string_view name) {
  return lookup(std::span<const Entry<Software>>(kSoftware), name, "program", "--software");
}

}  // namespace concertina
