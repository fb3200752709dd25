// What a model tells of each held-out sample, as a file with a row for each, for other programs.
// Invariant: the same bytes at every layout that makes the same logits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/evaluate/evaluate.h"

namespace concertina {

class PredictionRows {
 public:
  /// Rows of `split` for `path`, FILE.csv or FILE.jsonl. Input errors: another name, or a model
  /// that tells no classes.
  PredictionRows(Trainer& trainer, std::shared_ptr<const Dataset> dataset, Split split,
                 std::string path);

  /// For evaluate(): each rank keeps the logits that it has.
  SampleLogits see();
  /// The evaluation is through: rank 0 writes the file. Collective.
  void finish();

 private:
  struct Row {
    std::uint64_t sample = 0;
    std::int32_t label = -1;  // unknown
    std::span<const double> logits{};
    std::size_t prediction() const;
    /// That of the prediction, by softmax.
    double probability() const;
  };
  std::vector<Row> rows_of(const std::vector<std::vector<double>>& gathered) const;
  std::string name(std::size_t one) const;
  std::string csv(const std::vector<Row>& rows) const;
  std::string json_lines(const std::vector<Row>& rows) const;

  Trainer& trainer_;
  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  std::string path_;
  std::size_t classes_;
  bool csv_;
  std::vector<double> mine_;  // sample and logits of each
};

}  // namespace concertina
