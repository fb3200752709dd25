// The outputs of a model for held-out samples, as arrays for other programs: logits.npy
// [samples,T,V], or one row per sample [samples,V], and each field that the model read of them
// (tokens.npy, ...). Invariant: the same bytes at every layout that makes the same logits.
#pragma once

#include <memory>
#include <string>

#include "experiments/evaluate/evaluate.h"
#include "io/file.h"

namespace concertina {

class LogitsFiles {
 public:
  /// Starts the files of a split in `directory`, which is made. Collective.
  LogitsFiles(Trainer& trainer, std::shared_ptr<const Dataset> dataset, Split split,
              std::string directory);

  /// For evaluate(): each rank writes the logits that it has in their place.
  SampleLogits see();
  /// The evaluation is through and saw samples [0, samples). Collective.
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
