#include "experiments/train/step_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/index.h"
#include "core/log.h"
#include "core/step_history.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

/// This rank's first tensor in model order that has a non-finite weight; empty if there is none.
std::string first_bad_weight(const State& state) {
  std::string name;
  std::vector<std::byte> scratch;
  state.each_owned([&](const OwnedRun& run) {
    if (!name.empty()) return;
    const View weights = host_view(state.memory(), run.weight, scratch);
    if (!std::all_of(weights.f32(), weights.f32() + weights.count,
                     [](float weight) { return std::isfinite(weight); }))
      name = run.tensor->name;
  });
  return name;
}

/// Names of tensors whose digests differ between ranks.
std::set<std::string> different_tensors(const std::vector<nlohmann::json>& all) {
  std::map<std::string, std::string> first;
  std::set<std::string> different;
  for (const nlohmann::json& one : all)
    if (one.is_object())
      for (const auto& [name, digest] : one.at("digests").items()) {
        const auto [place, is_new] = first.emplace(name, digest);
        if (!is_new && place->second != digest) different.insert(name);
      }
  return different;
}

}  // namespace

StepGuard::StepGuard(TrainLaunch& launch)
    : launch_(launch), trainer_(launch.trainer), asked_(launch.config.verify.every) {
  if (asked_ > 0) every_ = left_ = asked_;
}

double StepGuard::share(double step_seconds) const {
  const StepEngine& engine = trainer_.engine();
  return engine.works() ? engine.state_check().seconds() / step_seconds : 0;
}

void StepGuard::plan(double share) {
  if (asked_ < 0) every_ = steps_between(share, kMostShare);
}

std::optional<StepResult> StepGuard::train(std::int64_t step, BatchSource& source) {
  if (asked_ != 0 && --left_ <= 0) {
    left_ = every_;
    trainer_.engine().state_check().record_next();
  }
  for (bool repaired = false;; repaired = true) {
    const StepResult result = trainer_.try_step(step, source);
    if (result.fault == StepFault::Kind::none) return skipped_ = 0, result;
    if (result.fault == StepFault::Kind::data) trainer_.throw_unread();
    const Report fault = report(step, result.fault);
    if (fault.repairable && !repaired) {
      if (trainer_.engine().works()) trainer_.engine().repair();
      tell(step, fault, "repaired");
      continue;
    }
    const std::string& policy = launch_.config.verify.on_fault;
    if (policy == "skip" && fault.kind == StepFault::Kind::not_finite &&
        ++skipped_ <= kMostSkipped) {
      trainer_.pass_over(step);
      tell(step, fault, "skipped");
      return result;
    }
    // If `concertina run` supervises the launch, a stop would cause a restart from the same state:
    // going back has the same effect, and shows whether the fault was transient.
    const bool rolls_back = policy == "rollback" || (policy == "stop" && !supervised_run().empty());
    if (!rolls_back || !launch_.rollback_steps.insert(step).second) stop(step, fault, repaired);
    tell(step, fault, "goes back");
    return std::nullopt;
  }
}

/// Collective.
StepGuard::Report StepGuard::report(std::int64_t step, StepFault::Kind kind) {
  const StepFault& fault = trainer_.engine().fault();
  nlohmann::json mine;  // null: a spare rank
  if (trainer_.engine().works()) {
    mine = {{"what", fault.what}, {"where", fault.where}};
    const StateCheck& check = trainer_.engine().state_check();
    if (kind == StepFault::Kind::not_finite) {
      mine["weight"] = first_bad_weight(trainer_.state());
    } else {
      mine.update({{"ranks", fault.ranks},
                   {"known", fault.known},
                   {"repairable", fault.repairable},
                   {"changed", check.changed()},
                   {"digests", nlohmann::json::object()}});
      for (const auto& [name, digest] : check.shared_digests())
        mine["digests"][name] = fmt::format("{:016x}", digest);
    }
  }
  const std::vector<nlohmann::json> all = gather_json(launch_.world, mine);
  if (kind == StepFault::Kind::state) return report_state(step, all);
  Report report{.kind = kind};
  const auto works = std::ranges::find_if(all, [](const auto& one) { return one.is_object(); });
  report.what = works->at("what");
  report.where = works->at("where");
  for (const nlohmann::json& one : all)
    if (one.is_object() && one["weight"] != "") {
      report.where +=
          fmt::format("; weights of {} are not finite", one["weight"].get<std::string>());
      break;
    }
  return report;
}

StepGuard::Report StepGuard::report_state(std::int64_t step,
                                          const std::vector<nlohmann::json>& all) const {
  const nlohmann::json& any = all[at(trainer_.assignment().working.front())];
  Report report{
      .kind = StepFault::Kind::state, .ranks = any["ranks"], .repairable = any["repairable"]};
  std::vector<std::string> places;
  for (const int rank : report.ranks)
    if (const auto names = all[at(rank)]["changed"].get<std::vector<std::string>>(); !names.empty())
      places.push_back(fmt::format("rank {}: {}", rank, fmt::join(names, ", ")));
  if (places.empty())
    places.push_back(fmt::format("rank{} {}: {}", report.ranks.size() > 1 ? "s" : "",
                                 fmt::join(report.ranks, ", "),
                                 fmt::join(different_tensors(all), ", ")));
  report.what =
      any["known"].get<bool>()
          ? fmt::format("in step {}, the state differs from the result of the previous update",
                        step)
          : fmt::format(
                "in step {}, replicas have different weights, and it is unknown which are correct",
                step);
  report.where = fmt::format("{}", fmt::join(places, "; "));
  return report;
}

void StepGuard::tell(std::int64_t step, const Report& report, const std::string& action) {
  if (!launch_.monitor) return;
  nlohmann::ordered_json facts{{"action", action}, {"what", report.what}, {"where", report.where}};
  if (report.kind == StepFault::Kind::state) facts["ranks"] = report.ranks;
  launch_.monitor->clear();
  log::warn("{} ({}): {}", report.what, report.where, action);
  if (action == "goes back")
    launch_.fault = std::move(facts);  // written to events.jsonl with the step to resume from
  else
    launch_.monitor->event(step, EventKind::fault, std::move(facts));
}

void StepGuard::stop(std::int64_t step, const Report& report, bool repaired) const {
  std::string what = report.what;
  if (repaired || launch_.rollback_steps.contains(step))
    what += ", again after the run was repaired, so the fault is not transient";
  else if (skipped_ > kMostSkipped)
    what += fmt::format(", after {} skipped steps", kMostSkipped);
  if (report.kind == StepFault::Kind::not_finite)
    throw_failure(
        what, report.where,
        fmt::format(
            "{}. If the fault was transient, rerun the same command to resume from the newest "
            "checkpoint, or set verify.on_fault = \"rollback\"",
            kDivergedAdvice));
  throw_failure(
      what, report.where,
      "replace a host whose memory fails repeatedly; rerun the same command to resume from the "
      "newest checkpoint, or set verify.on_fault = \"rollback\"");
}

}  // namespace concertina
