// What a model tells of each held-out sample, as a file with a row for each, for other programs.
// Invariant: the same bytes at every layout that makes the same logits.
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
  /// Rows of `split` for `path`, FILE.csv or FILE.jsonl. Input errors: another name, or a model
  /// that tells no classes and no scores.
  PredictionRows(Trainer& trainer, std::shared_ptr<const Dataset> dataset, Split split,
                 std::string path);

  /// For evaluate(): each rank keeps the logits that it has.
  SampleLogits see();
  /// The evaluation is through: rank 0 writes the file. Collective.
  void finish();

 private:
  using Line = nlohmann::ordered_json;  // of one sample
  Line line(std::uint64_t sample, std::span<const double> numbers) const;
  void add_class(std::span<const double> logits, Line& line) const;
  void add_scores(std::span<const double> logits, Line& line) const;
  void add_labels(std::span<const double> logits, Line& line) const;
  void add_tags(std::span<const double> told, Line& line) const;
  std::string name(std::size_t one) const;
  /// The cells of a line, or with `names` those of the columns.
  std::string csv(const Line& line, bool names) const;

  Trainer& trainer_;
  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  std::string path_;
  TargetKind kind_;
  std::size_t classes_;
  bool csv_;
  /// What is right of one sample, as the field of its targets has it.
  std::vector<std::int32_t> tags_;
  std::vector<float> scores_;
  std::vector<View> views_;
  std::size_t each_ = 0;      // numbers per sample: logits, or of words the class of each token
  std::vector<double> mine_;  // sample and numbers of each
};

}  // namespace concertina
