#include "experiments/evaluate/prediction_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/machine/gather.h"
#include "io/csv.h"
#include "io/file.h"

namespace concertina {

PredictionRows::PredictionRows(Trainer& trainer, std::shared_ptr<const Dataset> dataset,
                               Split split, std::string path)
    : trainer_(trainer),
      dataset_(std::move(dataset)),
      split_(split),
      path_(std::move(path)),
      classes_(static_cast<std::size_t>(trainer.config().model.classes)),
      csv_(std::filesystem::path(path_).extension() == ".csv") {
  if (!csv_ && std::filesystem::path(path_).extension() != ".jsonl")
    throw_input("predictions are written as CSV or as lines of JSON", path_,
                "--predictions FILE.csv or FILE.jsonl");
  const std::vector<Field> reads = fields_of(trainer.job().model);
  if (std::ranges::find(reads, "label", &Field::name) == reads.end())
    throw_input("this model tells no classes", "--predictions", "--logits DIRECTORY");
}

SampleLogits PredictionRows::see() {
  return [this](std::uint64_t sample, std::span<const float> logits) {
    mine_.push_back(static_cast<double>(sample));
    mine_.insert(mine_.end(), logits.begin(), logits.end());
  };
}

void PredictionRows::finish() {
  const std::vector<std::vector<double>> gathered = gather_on_first(trainer_.world(), mine_);
  together(trainer_.world(), [&] {
    if (trainer_.world().rank() != 0) return;
    const std::vector<Row> rows = rows_of(gathered);
    atomic_replace(path_, csv_ ? csv(rows) : json_lines(rows));
  });
}

std::size_t PredictionRows::Row::prediction() const {
  return static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
}

double PredictionRows::Row::probability() const {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - most);
  return 1 / sum;
}

std::vector<PredictionRows::Row> PredictionRows::rows_of(
    const std::vector<std::vector<double>>& gathered) const {
  std::int32_t label = -1;
  std::vector<View> views(dataset_->fields().size());
  views[static_cast<std::size_t>(field_index(*dataset_, "label"))] = {&label, 1, DType::i32};
  std::vector<Row> rows;
  for (const std::vector<double>& numbers : gathered)
    for (std::size_t at = 0; at < numbers.size(); at += 1 + classes_) {
      Row row{.sample = static_cast<std::uint64_t>(numbers[at])};
      row.logits = std::span(numbers).subspan(at + 1, classes_);
      dataset_->write({.split = split_, .sample = row.sample}, views);
      row.label = label;
      rows.push_back(row);
    }
  std::ranges::sort(rows, {}, &Row::sample);
  return rows;
}

std::string PredictionRows::name(std::size_t one) const {
  return one < dataset_->classes().size() ? dataset_->classes()[one] : std::to_string(one);
}

std::string PredictionRows::csv(const std::vector<Row>& rows) const {
  std::vector<std::string> cells{"index", "label", "prediction", "probability"};
  for (std::size_t one = 0; one < classes_; ++one) cells.push_back("logit_" + name(one));
  std::string text = csv_line(cells);
  for (const Row& row : rows) {
    cells = {std::to_string(row.sample),
             row.label < 0 ? "" : name(static_cast<std::size_t>(row.label)), name(row.prediction()),
             fmt::format("{}", row.probability())};
    for (const double logit : row.logits) cells.push_back(fmt::format("{}", logit));
    text += csv_line(cells);
  }
  return text;
}

std::string PredictionRows::json_lines(const std::vector<Row>& rows) const {
  std::string text;
  for (const Row& row : rows) {
    nlohmann::ordered_json line{{"index", row.sample},
                                {"label", nullptr},
                                {"prediction", name(row.prediction())},
                                {"probability", row.probability()},
                                {"logits", row.logits}};
    if (row.label >= 0) line["label"] = name(static_cast<std::size_t>(row.label));
    text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  return text;
}

}  // namespace concertina
