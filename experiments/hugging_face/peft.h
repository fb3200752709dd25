// Adapters as a folder of Hugging Face's PEFT: adapter_config.json, and adapter_model.safetensors
// with A and B of each adapted module, and the head of classes.
// A map that consists of several modules of theirs (q, k, v) has one adapter here: on export, the
// modules share its A. On import, the As of the modules are put side by side, and each B fills the
// rows of its own, so the rank and alpha are multiples of theirs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/hugging_face/published_weights.h"
#include "io/checkpoint/safetensors.h"

namespace concertina {

/// The folder of the published model: that of the base model if `folder` is a PEFT folder,
/// otherwise `folder`. Input error: the base model is not a folder.
std::string base_folder(const std::string& folder);

/// Sets the keys of [lora] from model.from, if that is a PEFT folder. Input errors: a variant of
/// LoRA that is not supported, an unknown tensor, a key that is set to another value.
void adopt_peft(RunConfig& config);

/// The tensors of a PEFT folder, for the model of a config.
class PeftWeights {
 public:
  PeftWeights(const std::string& folder, const RunConfig& config);
  const std::string& path() const { return file_.path(); }
  /// Reads one of our tensors; false if the folder lacks it.
  bool read(const std::string& ours, std::span<float> out) const;

 private:
  bool read_adapter(const std::string& map, bool is_a, std::span<float> out) const;
  /// Throws Error{bad_input} unless the tensor has this shape.
  std::vector<float> values_of(const std::string& name,
                               const std::vector<std::int64_t>& shape) const;

  SafetensorsFile file_;
  int rank_;                           // of our adapters
  std::size_t module_rank_;            // of theirs
  std::vector<PublishedPieces> maps_;  // with their B [rank,out] as ours
  std::vector<PublishedPieces> classes_;
};

/// Writes the adapters of a run with [lora]. `read` reads our tensors. Input error: the run trained
/// other tensors, too.
void write_peft(const std::string& folder, const RunConfig& config, StoredType type,
                const ReadOurs& read);

}  // namespace concertina
