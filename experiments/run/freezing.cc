#include "experiments/run/freezing.h"

#include <algorithm>

#include "core/error.h"
#include "experiments/run/weight_drift.h"

namespace concertina {
namespace {

using Json = nlohmann::json;

/// The layer that a bucket belongs to: that of its first use, as it freezes with it.
int layer_of(const ModelSpec& model, const Bucket& bucket) {
  const auto end =
      std::upper_bound(model.layer_ends.begin(), model.layer_ends.end(), bucket.uses.front());
  return end == model.layer_ends.end() ? -1 : static_cast<int>(end - model.layer_ends.begin());
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::optional<double> optional_number(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<double>(json.get<double>());
}

Json to_json(const FreezeRecord& record) {
  return {{"step", record.step},   {"epoch", record.epoch},        {"loss", record.loss},
          {"lr", record.lr},       {"frozen", record.frozen},      {"grad_norm", record.grad_norm},
          {"drift", record.drift}, {"reference", record.reference}};
}

FreezeRecord record_from(const Json& json) {
  return {.step = json.at("step"),
          .epoch = json.at("epoch"),
          .loss = json.at("loss"),
          .lr = json.at("lr"),
          .frozen = json.at("frozen"),
          .grad_norm = json.at("grad_norm"),
          .drift = json.at("drift"),
          .reference = json.at("reference")};
}

Json to_json(const FreezeState& state) {
  Json history = Json::array();
  for (const FreezeRecord& record : state.history) history.push_back(to_json(record));
  return {{"history", history},
          {"memory", state.memory},
          {"best_loss", or_null(state.best_loss)},
          {"last_lr", or_null(state.last_lr)},
          {"lr_fell", state.lr_fell},
          {"from_step", state.from_step},
          {"from_epoch", state.from_epoch}};
}

FreezeState state_from(const Json& json) {
  FreezeState state{.history = {},
                    .memory = json.at("memory"),
                    .best_loss = optional_number(json.at("best_loss")),
                    .last_lr = optional_number(json.at("last_lr")),
                    .lr_fell = json.at("lr_fell"),
                    .from_step = json.at("from_step"),
                    .from_epoch = json.at("from_epoch")};
  for (const Json& record : json.at("history")) state.history.push_back(record_from(record));
  return state;
}

Json to_json(const FreezeSums& sums) {
  return {{"steps", sums.steps},
          {"loss", sums.loss},
          {"lr", sums.lr},
          {"squares", sums.squares},
          {"finite", sums.finite}};
}

FreezeSums sums_from(const Json& json) {
  return {.steps = json.at("steps"),
          .loss = json.at("loss"),
          .lr = json.at("lr"),
          .squares = json.at("squares"),
          .finite = json.at("finite")};
}

}  // namespace

Freezing::Freezing(const RunConfig& config, const Job& job)
    : job_(job), rules_(freeze_rules(config, job.model)), every_(config.freeze.every) {
  for (const Bucket& bucket : make_buckets(job.model))
    layer_of_bucket_.push_back(layer_of(job.model, bucket));
  squares_.resize(job.model.layer_ends.size());
}

std::optional<FreezeChange> Freezing::after_step(std::int64_t step, const StepResult& result,
                                                 Trainer& trainer, std::int64_t epochs_before,
                                                 std::int64_t epochs) {
  if (rules_.name == "none") return std::nullopt;
  std::fill(squares_.begin(), squares_.end(), 0.0);
  const std::vector<double>& bucket_squares = trainer.bucket_squares();
  for (std::size_t b = 0; b < bucket_squares.size(); ++b)
    if (layer_of_bucket_[b] >= 0)
      squares_[static_cast<std::size_t>(layer_of_bucket_[b])] += bucket_squares[b];
  sums_ = add_step(std::move(sums_), result.loss, result.lr, squares_);
  if (every_ > 0 ? step % every_ != 0 : epochs == epochs_before) return std::nullopt;
  FreezeRecord record = record_of(sums_, step, static_cast<double>(epochs), frozen_);
  if (has_reference_) record.drift = weight_drift(trainer, layer_of_bucket_, squares_.size());
  FreezeChange change{.decision = decide(rules_, state_, record)};
  state_ = remember(rules_, std::move(state_), std::move(record), change.decision);
  sums_.steps = 0;
  if (change.decision.take_reference) {
    take_reference(trainer);
    has_reference_ = true;
  }
  frozen_ = change.layers = change.decision.frozen;
  change.units = units_of_layers(job_.model, frozen_);
  return change;
}

Json Freezing::progress() const {
  return {{"layers", frozen_},
          {"reference", has_reference_},
          {"state", to_json(state_)},
          {"sums", to_json(sums_)}};
}

void Freezing::restore(const Json& progress, const std::string& source) {
  if (progress.is_null()) return;
  try {
    frozen_ = progress.at("layers");
    has_reference_ = progress.at("reference");
    state_ = state_from(progress.at("state"));
    sums_ = sums_from(progress.at("sums"));
  } catch (const Json::exception& error) {
    throw_failure(
        fmt::format("what the checkpoint says of freezing cannot be read: {}", error.what()),
        source, "a checkpoint of this version, or another run.name");
  }
}

}  // namespace concertina
