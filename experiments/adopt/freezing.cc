#include "experiments/adopt/freezing.h"

#include <algorithm>

#include "core/error.h"
#include "experiments/adopt/weight_drift.h"

namespace concertina {
namespace {

/// The layer that a bucket belongs to: that of its first use, as it freezes with it.
int layer_of(const ModelSpec& model, const Bucket& bucket) {
  const auto end =
      std::upper_bound(model.layer_ends.begin(), model.layer_ends.end(), bucket.uses.front());
  return end == model.layer_ends.end() ? -1 : static_cast<int>(end - model.layer_ends.begin());
}

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

std::optional<double> optional_number(const nlohmann::json& json) {
  return json.is_null() ? std::nullopt : std::optional<double>(json.get<double>());
}

nlohmann::json to_json(const FreezeRecord& record) {
  return {{"step", record.step},   {"epoch", record.epoch},        {"loss", record.loss},
          {"lr", record.lr},       {"frozen", record.frozen},      {"grad_norm", record.grad_norm},
          {"drift", record.drift}, {"reference", record.reference}};
}

FreezeRecord record_from(const nlohmann::json& json) {
  return {.step = json.at("step"),
          .epoch = json.at("epoch"),
          .loss = json.at("loss"),
          .lr = json.at("lr"),
          .frozen = json.at("frozen"),
          .grad_norm = json.at("grad_norm"),
          .drift = json.at("drift"),
          .reference = json.at("reference")};
}

nlohmann::json to_json(const SkipPlan& plan) {
  nlohmann::json groups = nlohmann::json::array();
  for (const SkipGroup& group : plan.groups)
    groups.push_back({{"units", group.units}, {"skipped", group.skipped}});
  return {{"groups", groups}, {"step_ratio", plan.step_ratio}, {"best_ratio", plan.best_ratio}};
}

SkipPlan skip_plan_from(const nlohmann::json& json) {
  SkipPlan plan{
      .groups = {}, .step_ratio = json.at("step_ratio"), .best_ratio = json.at("best_ratio")};
  for (const nlohmann::json& group : json.at("groups"))
    plan.groups.push_back({.units = group.at("units"), .skipped = group.at("skipped")});
  return plan;
}

/// What the stages of the assignment that the run started with leave out.
nlohmann::ordered_json skip_facts(const SkipPlan& plan) {
  std::vector<double> shares;
  for (const SkipGroup& group : plan.groups)
    shares.push_back(group.units.empty() ? 0
                                         : static_cast<double>(group.skipped) /
                                               static_cast<double>(group.units.size()));
  return {{"skipped_by_stage", shares},
          {"predicted_step_ratio", plan.step_ratio},
          {"best_step_ratio", plan.best_ratio}};
}

nlohmann::json to_json(const FreezeState& state) {
  nlohmann::json history = nlohmann::json::array();
  for (const FreezeRecord& record : state.history) history.push_back(to_json(record));
  return {{"history", history},
          {"memory", state.memory},
          {"best_loss", or_null(state.best_loss)},
          {"last_lr", or_null(state.last_lr)},
          {"lr_fell", state.lr_fell},
          {"from_step", state.from_step},
          {"from_epoch", state.from_epoch},
          {"planned", to_json(state.planned)},
          {"skips", state.skips}};
}

FreezeState state_from(const nlohmann::json& json) {
  FreezeState state{.history = {},
                    .memory = json.at("memory"),
                    .best_loss = optional_number(json.at("best_loss")),
                    .last_lr = optional_number(json.at("last_lr")),
                    .lr_fell = json.at("lr_fell"),
                    .from_step = json.at("from_step"),
                    .from_epoch = json.at("from_epoch")};
  if (json.contains("planned")) {  // else of a program that left out no weight gradients
    state.planned = skip_plan_from(json.at("planned"));
    state.skips = json.at("skips");
  }
  for (const nlohmann::json& record : json.at("history"))
    state.history.push_back(record_from(record));
  return state;
}

nlohmann::json to_json(const FreezeSums& sums) {
  return {{"steps", sums.steps},
          {"loss", sums.loss},
          {"lr", sums.lr},
          {"squares", sums.squares},
          {"finite", sums.finite}};
}

FreezeSums sums_from(const nlohmann::json& json) {
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

void Freezing::consider(const RunView& view, Trainer& trainer, Change& change) {
  if (rules_.name == "none") return;
  add(view, trainer);
  if (every_ > 0 ? !view.due(every_) : view.epochs == view.epochs_before) return;
  const FreezeDecision decision = ask(view, trainer);
  const int before = trainer.layout().frozen_units;
  const int units = units_of_layers(job_.model, decision.frozen);
  nlohmann::ordered_json facts = {{"layers", decision.frozen}};
  if (units != before) facts.update({{"units_before", before}, {"units", units}});
  facts.update({{"statistic", decision.statistic}, {"why", decision.reason}});
  if (decision.skips) facts.update(skip_facts(state_.planned));
  change.events.push_back({"freeze", std::move(facts)});
  if (units == before) return;
  Request request = trainer.asked_with_frozen(units);
  Assignment next = assign(job_, request);
  change.next = {std::move(request), std::move(next)};
  change.cause = change.events.size() - 1;
  change.reasons.push_back(
      fmt::format("{} of {} layers frozen ({})", decision.frozen, rules_.layers, decision.reason));
}

void Freezing::add(const RunView& view, const Trainer& trainer) {
  std::fill(squares_.begin(), squares_.end(), 0.0);
  const std::vector<double>& bucket_squares = trainer.bucket_squares();
  for (std::size_t b = 0; b < bucket_squares.size(); ++b)
    if (layer_of_bucket_[b] >= 0)
      squares_[static_cast<std::size_t>(layer_of_bucket_[b])] += bucket_squares[b];
  sums_ = add_step(std::move(sums_), view.result.loss, view.result.lr, squares_);
}

FreezeDecision Freezing::ask(const RunView& view, Trainer& trainer) {
  FreezeRecord record = record_of(sums_, view.step, static_cast<double>(view.epochs),
                                  layers_of_units(job_.model, trainer.layout().frozen_units));
  if (has_reference_) record.drift = weight_drift(trainer, layer_of_bucket_, squares_.size());
  FreezeDecision decision = decide(rules_, state_, record);
  state_ = remember(rules_, std::move(state_), std::move(record), decision);
  sums_.steps = 0;
  skip(trainer);
  if (decision.take_reference) {
    take_reference(trainer);
    has_reference_ = true;
  }
  return decision;
}

void Freezing::skip(Trainer& trainer) const {
  trainer.skip(state_.skips ? state_.planned.groups : std::vector<SkipGroup>{});
}

nlohmann::json Freezing::progress() const {
  return {{"reference", has_reference_}, {"state", to_json(state_)}, {"sums", to_json(sums_)}};
}

void Freezing::restore(const nlohmann::json& progress, Trainer& trainer,
                       const std::string& source) {
  if (rules_.name == "none") return;
  if (progress.is_null() && trainer.done() > 0)
    throw_failure(fmt::format("the checkpoint does not say what freeze.policy = \"{}\" has seen",
                              rules_.name),
                  source, kOtherCheckpoint);
  if (progress.is_null() && rules_.policy->plan_skips != nullptr)
    state_.planned = rules_.policy->plan_skips(job_, trainer.assignment(), rules_.options);
  if (progress.is_null()) return;
  try {
    has_reference_ = progress.at("reference");
    state_ = state_from(progress.at("state"));
    sums_ = sums_from(progress.at("sums"));
  } catch (const nlohmann::json::exception& error) {
    throw_failure(
        fmt::format("what the checkpoint says of freezing cannot be read: {}", error.what()),
        source, kOtherCheckpoint);
  }
  const bool alike =
      sums_.squares.size() == squares_.size() || (sums_.steps == 0 && sums_.squares.empty());
  if (!alike || sums_.steps < 0 || state_.from_step < 0 || state_.from_epoch < 0)
    throw_failure(
        fmt::format(
            "what the checkpoint says of freezing cannot be: sums over {} steps of {} layers, "
            "a policy that began at step {} and epoch {}",
            sums_.steps, sums_.squares.size(), state_.from_step, state_.from_epoch),
        source, kOtherCheckpoint);
  skip(trainer);
}

}  // namespace concertina
