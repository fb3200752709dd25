// Writes the model's prediction for each held-out sample as a row of a file, for other programs.
// Invariant: equal logits give equal bytes in any layout.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "experiments/evaluate/evaluate.h"

namespace concertina {

class PredictionRows {
 public:
  /// Prepares to write rows for `split` to `path`, FILE.csv or FILE.jsonl. Throws Error{bad_input}
  /// for any other extension, or if the model predicts neither classes nor scores.
  PredictionRows(Trainer& trainer, std::shared_ptr<const Dataset> dataset, Split split,
                 std::string path);

  /// The callback for evaluate(): each rank keeps its logits.
  SampleLogits see();
  /// Writes the file on rank 0 after the evaluation. Collective.
  void finish();

 private:
  using Line = nlohmann::ordered_json;  // of one sample
  Line line(std::uint64_t sample, std::span<const double> numbers) const;
  void add_class(std::span<const double> logits, Line& line) const;
  void add_scores(std::span<const double> logits, Line& line) const;
  void add_labels(std::span<const double> logits, Line& line) const;
  void add_tags(std::span<const double> predicted, Line& line) const;
  std::string name(std::size_t one) const;
  /// The cells of a line, or the column names if `names`.
  std::string csv(const Line& line, bool names) const;

  Trainer& trainer_;
  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  std::string path_;
  TargetKind kind_;
  std::size_t classes_;
  bool csv_;
  /// The true targets of one sample, from its field.
  std::vector<std::int32_t> tags_;
  std::vector<float> scores_;
  std::int32_t length_ = 0;  // in tokens, if the model reads it
  std::vector<View> views_;
  std::size_t each_ = 0;      // numbers per sample: logits, or the class of each token
  std::vector<double> mine_;  // for each sample on this rank: its index, then its numbers
};

}  // namespace concertina
