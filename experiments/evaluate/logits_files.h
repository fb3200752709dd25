// Writes the outputs of a model for held-out samples as arrays for other programs: logits.npy of
// shape [samples,T,V], or [samples,V] with one row per sample, and each field that the model reads
// (tokens.npy, ...). Invariant: equal logits give equal bytes in any layout.
#pragma once

#include <memory>
#include <string>

#include "experiments/evaluate/evaluate.h"
#include "io/file.h"

namespace concertina {

class LogitsFiles {
 public:
  /// Opens the files of a split in `directory`, which it creates. Collective.
  LogitsFiles(Trainer& trainer, std::shared_ptr<const Dataset> dataset, Split split,
              std::string directory);

  /// The callback for evaluate(): each rank writes its logits at their position in the file.
  SampleLogits see();
  /// Completes the files after the evaluation of samples [0, samples). Collective.
  void finish(std::int64_t samples);

 private:
  std::string path(const std::string& array) const { return directory_ + "/" + array + ".npy"; }
  void write_logits_header(std::int64_t samples);
  void write_field(const Field& field, std::int64_t samples);

  Trainer& trainer_;
  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  std::string directory_;
  File logits_;
};

}  // namespace concertina
