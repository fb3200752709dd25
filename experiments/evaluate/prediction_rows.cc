#include "experiments/evaluate/prediction_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/output.h"
#include "io/csv.h"
#include "io/file.h"
#include "models/task.h"

namespace concertina {

PredictionRows::PredictionRows(Trainer& trainer, std::shared_ptr<const Dataset> dataset,
                               Split split, std::string path)
    : trainer_(trainer),
      dataset_(std::move(dataset)),
      split_(split),
      path_(std::move(path)),
      kind_(task_of(trainer.config().model.family, trainer.config().model.task).targets),
      classes_(static_cast<std::size_t>(trainer.config().model.classes)),
      csv_(std::filesystem::path(path_).extension() == ".csv") {
  if (!csv_ && std::filesystem::path(path_).extension() != ".jsonl")
    throw_input("predictions are written as CSV or JSON lines", path_,
                "--predictions FILE.csv or FILE.jsonl");
  views_.resize(dataset_->fields().size());
  for (const Field& field : fields_of(trainer.job().model)) {
    const auto count = static_cast<std::size_t>(field.elements());
    View* const view = &views_[static_cast<std::size_t>(field_index(*dataset_, field.name))];
    if (field.name == "scores") {
      scores_.resize(each_ = count);
      *view = {scores_.data(), count, DType::f32};
    } else if (field.name == "label" || field.name == "tags") {
      tags_.resize(count);
      each_ = field.name == "tags" ? count : classes_;
      *view = {tags_.data(), count, DType::i32};
    } else if (field.name == "lengths") {
      *view = {&length_, 1, DType::i32};
    }
  }
  if (each_ == 0)
    throw_input("this model predicts neither classes nor scores", "--predictions",
                "--logits DIRECTORY");
}

SampleLogits PredictionRows::see() {
  return [this](std::uint64_t sample, std::span<const float> logits) {
    mine_.push_back(static_cast<double>(sample));
    if (kind_ != TargetKind::tags) {
      mine_.insert(mine_.end(), logits.begin(), logits.end());
      return;
    }
    for (std::size_t t = 0; t < each_; ++t)
      mine_.push_back(static_cast<double>(likeliest(logits.subspan(t * classes_, classes_))));
  };
}

void PredictionRows::finish() {
  const std::vector<std::vector<double>> gathered = gather_on_first(trainer_.world(), mine_);
  together(trainer_.world(), [&] {
    if (trainer_.world().rank() != 0) return;
    std::vector<std::span<const double>> rows;
    for (const std::vector<double>& numbers : gathered)
      for (std::size_t at = 0; at < numbers.size(); at += 1 + each_)
        rows.push_back(std::span(numbers).subspan(at, 1 + each_));
    std::ranges::sort(rows, {}, [](std::span<const double> row) { return row[0]; });
    std::string text;
    for (const std::span<const double> row : rows) {
      const Line one = line(static_cast<std::uint64_t>(row[0]), row.subspan(1));
      if (csv_ && text.empty()) text = csv(one, /*names=*/true);
      text += csv_ ? csv(one, /*names=*/false) : json_line(one);
    }
    atomic_replace(path_, text);
  });
}

PredictionRows::Line PredictionRows::line(std::uint64_t sample,
                                          std::span<const double> numbers) const {
  dataset_->write({.split = split_, .sample = sample}, views_);
  Line line{{"index", sample}};
  if (length_ != 0) line["tokens"] = length_;
  switch (kind_) {
    case TargetKind::label:
      add_class(numbers, line);
      break;
    case TargetKind::scores:
      add_scores(numbers, line);
      break;
    case TargetKind::labels:
      add_labels(numbers, line);
      break;
    case TargetKind::tags:
      add_tags(numbers, line);
  }
  return line;
}

void PredictionRows::add_class(std::span<const double> logits, Line& line) const {
  const std::size_t prediction = likeliest(logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - logits[prediction]);
  line["label"] = nullptr;
  if (tags_[0] != kIgnored) line["label"] = name(static_cast<std::size_t>(tags_[0]));
  line["prediction"] = name(prediction);
  line["probability"] = 1 / sum;
  line["logits"] = logits;
}

/// Adds a single score as a number, and several scores as a list.
void PredictionRows::add_scores(std::span<const double> logits, Line& line) const {
  const std::vector<double> right(scores_.begin(), scores_.end());
  line["score"] = right.size() == 1 ? Line(right[0]) : Line(right);
  if (scores_[0] == kNoScore) line["score"] = nullptr;
  line["prediction"] = right.size() == 1 ? Line(logits[0]) : Line(logits);
}

void PredictionRows::add_labels(std::span<const double> logits, Line& line) const {
  line["labels"] = line["prediction"] = Line::array();
  for (std::size_t k = 0; k < classes_; ++k) {
    if (scores_[k] > 0) line["labels"].push_back(name(k));
    if (logits[k] > 0) line["prediction"].push_back(name(k));
  }
  if (scores_[0] == kNoScore) line["labels"] = nullptr;
  line["logits"] = logits;
}

/// Adds the tags of a sample's words.
void PredictionRows::add_tags(std::span<const double> predicted, Line& line) const {
  line["tags"] = line["prediction"] = Line::array();
  for (std::size_t t = 0; t < each_; ++t) {
    if (tags_[t] == kIgnored) continue;
    line["tags"].push_back(name(static_cast<std::size_t>(tags_[t])));
    line["prediction"].push_back(name(static_cast<std::size_t>(predicted[t])));
  }
}

std::string PredictionRows::name(std::size_t one) const {
  return one < dataset_->classes().size() ? dataset_->classes()[one] : std::to_string(one);
}

std::string PredictionRows::csv(const Line& line, bool names) const {
  const auto cell = [](const Line& value) {
    if (value.is_null()) return std::string();
    if (value.is_string()) return value.get<std::string>();
    return value.is_number_float()
               ? fmt::format("{}", value.get<double>())
               : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::vector<std::string> cells;
  for (const auto& [key, value] : line.items()) {
    if (key != "logits") {
      cells.push_back(names ? key : cell(value));
      continue;
    }
    for (std::size_t one = 0; one < value.size(); ++one)
      cells.push_back(names ? "logit_" + name(one) : cell(value[one]));
  }
  return csv_line(cells);
}

}  // namespace concertina
