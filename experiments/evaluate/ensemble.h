// Classifies held-out samples with several models: by the mean of their probabilities, and by vote.
// Invariant: equal logits give equal results in any layout.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/evaluate/evaluate.h"

namespace concertina {

class Ensemble {
 public:
  /// The callback for the evaluation of the next member.
  SampleLogits see();
  /// Ends the evaluation of the member `run`, which has one class per sample. Throws
  /// Error{bad_input} if its held-out data or classes differ from those of the first. Collective.
  void add(const std::string& run, Trainer& trainer, const Dataset& dataset, Split split,
           const Validation& result);
  /// On rank 0: the loss and metrics of each member ("members"), of the mean of their probabilities
  /// ("mean"), and the metrics of the class with the most votes ("vote"), of which the most
  /// probable one wins a tie.
  nlohmann::ordered_json report() const;
  static std::string text(const nlohmann::ordered_json& report);

 private:
  struct Predicted {
    std::vector<double> mean;  // probabilities
    std::vector<int> votes;
  };
  Predicted predicted(std::size_t sample) const;

  std::vector<std::string> classes_;
  std::string data_;  // SHA-256 of the held-out data
  std::vector<std::int32_t> labels_;
  std::vector<double> mine_;  // for each sample of this rank: its index, then its logits
  std::vector<std::vector<double>> probabilities_;  // of each member, [samples, classes]
  std::vector<nlohmann::ordered_json> members_;
};

}  // namespace concertina
