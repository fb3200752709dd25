// The weights of a checkpoint whose run trained adapters ([lora]), as those of the same model
// without adapters.
#pragma once

#include <span>
#include <string>

#include "experiments/config/config.h"
#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {

/// The same model without adapters: the one that is exported, and that other runs start from.
RunConfig without_adapters(RunConfig config);

/// Whether `tensor` (our name) is A or B of an adapter.
bool is_adapter(const std::string& tensor);

/// Reads a whole weight; if it has an adapter, adds it: W + alpha / rank A B.
void read_merged(CheckpointReader& reader, const std::string& tensor, std::span<float> out);

}  // namespace concertina
