#include "experiments/evaluate/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text/text_table.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

/// The labels of the first `samples` samples of a split.
std::vector<std::int32_t> labels_of(const Dataset& dataset, Split split, std::int64_t samples) {
  std::vector<std::int32_t> labels;
  std::int32_t label = 0;
  std::vector<View> views(dataset.fields().size());
  views[static_cast<std::size_t>(field_index(dataset, "label"))] = {&label, 1, DType::i32};
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    dataset.write({.split = split, .sample = static_cast<std::uint64_t>(sample)}, views);
    labels.push_back(label);
  }
  return labels;
}

/// Replaces logits by their softmax.
void to_probabilities(std::span<double> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (double& logit : logits) sum += logit = std::exp(logit - most);
  for (double& logit : logits) logit /= sum;
}

void add_metrics(std::span<const Metric> metrics, nlohmann::ordered_json& json) {
  for (const Metric& metric : metrics) json[metric.name] = metric.value;
}

}  // namespace

SampleLogits Ensemble::see() {
  mine_.clear();
  return [this](std::uint64_t sample, std::span<const float> logits) {
    mine_.push_back(static_cast<double>(sample));
    mine_.insert(mine_.end(), logits.begin(), logits.end());
  };
}

void Ensemble::add(const std::string& run, Trainer& trainer, const Dataset& dataset, Split split,
                   const Validation& result) {
  const std::vector<std::vector<double>> gathered = gather_on_first(trainer.world(), mine_);
  together(trainer.world(), [&] {
    if (trainer.world().rank() != 0) return;
    const std::string data = dataset.content(split, [] {}).sha256;
    const std::vector<std::string> names(dataset.classes().begin(), dataset.classes().end());
    if (members_.empty()) {
      classes_ = names;
      data_ = data;
      labels_ = labels_of(dataset, split, result.samples);
    }
    if (data != data_ || std::ssize(labels_) != result.samples || classes_ != names)
      throw_input(fmt::format("this run and the first have different {}",
                              classes_ == names ? "held-out data" : "classes"),
                  run, "runs that hold out the same data, or --files FILE");
    const std::size_t classes = classes_.size();
    std::vector<double>& rows = probabilities_.emplace_back(labels_.size() * classes);
    for (const std::vector<double>& numbers : gathered)
      for (std::size_t at = 0; at < numbers.size(); at += 1 + classes) {
        const auto row =
            std::span(rows).subspan(static_cast<std::size_t>(numbers[at]) * classes, classes);
        std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(at) + 1, classes, row.begin());
        to_probabilities(row);
      }
    members_.push_back({{"run", run}, {"loss", result.loss}});
    add_metrics(result.metrics, members_.back());
  });
}

Ensemble::Predicted Ensemble::predicted(std::size_t sample) const {
  const std::size_t classes = classes_.size();
  Predicted predicted{std::vector<double>(classes), std::vector<int>(classes)};
  for (const std::vector<double>& member : probabilities_) {
    const auto row = std::span(member).subspan(sample * classes, classes);
    for (std::size_t k = 0; k < classes; ++k)
      predicted.mean[k] += row[k] / static_cast<double>(probabilities_.size());
    ++predicted.votes[likeliest(row)];
  }
  return predicted;
}

nlohmann::ordered_json Ensemble::report() const {
  const std::size_t classes = classes_.size();
  Confusion by_mean(classes), by_vote(classes);
  double loss = 0;
  std::int64_t labelled = 0;
  for (std::size_t sample = 0; sample < labels_.size(); ++sample) {
    if (labels_[sample] < 0) continue;
    const auto label = static_cast<std::size_t>(labels_[sample]);
    const Predicted votes = predicted(sample);
    std::size_t chosen = 0;
    for (std::size_t k = 1; k < classes; ++k)
      if (std::pair(votes.votes[k], votes.mean[k]) >
          std::pair(votes.votes[chosen], votes.mean[chosen]))
        chosen = k;
    ++by_mean.at(label, likeliest(std::span(votes.mean)));
    ++by_vote.at(label, chosen);
    loss -= std::log(votes.mean[label]);
    ++labelled;
  }
  nlohmann::ordered_json report{{"samples", labelled}, {"members", members_}};
  report["mean"]["loss"] = loss / static_cast<double>(labelled);
  add_metrics(class_metrics(by_mean), report["mean"]);
  add_metrics(class_metrics(by_vote), report["vote"]);
  return report;
}

std::string Ensemble::text(const nlohmann::ordered_json& report) {
  std::vector<std::vector<std::string>> rows{{"", "loss", "accuracy"}};
  const auto add = [&](const std::string& name, const nlohmann::ordered_json& row) {
    rows.push_back({name,
                    row.contains("loss") ? fmt::format("{:.4f}", row["loss"].get<double>()) : "-",
                    fmt::format("{:.2f}%", 100 * row.at("accuracy").get<double>())});
  };
  for (const auto& member : report["members"]) add(member["run"], member);
  add("mean of probabilities", report["mean"]);
  add("majority vote", report["vote"]);
  return text_table(rows, 1);
}

}  // namespace concertina
