#include "experiments/adopt/repartition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/step_history.h"
#include "core/text/number_text.h"
#include "experiments/config/schedule_file.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/link_probe.h"
#include "experiments/predict/machine_file.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/run/layout_json.h"
#include "parallel/generate/assign.h"
#include "parallel/repartition/grown_batch.h"

namespace concertina {
namespace {

/// Returns the layout that a policy chose, as stored in a checkpoint: schedule (a name or a path),
/// spare, pipelines.
nlohmann::json layout_json(const Request& request, const Layout& layout) {
  return {{"schedule", request.schedule},
          {"spare", request.spare},
          {"pipelines", to_json(layout, StageForm::named)}};
}

/// Returns `request` with the grid, schedule and spare ranks of `stored`; assign() checks whether
/// they fit. Throws nlohmann::json::exception if `stored` is malformed.
Request with_stored_layout(Request request, const nlohmann::json& stored) {
  request.schedule = stored.at("schedule");
  request.file = own_schedule(request.schedule);
  request.spare = stored.at("spare");
  request.pp = request.dp = request.chunks = 0;
  request.layout = layout_from(stored.at("pipelines"));
  return request;
}

constexpr std::size_t kMeasuredSteps = 2;  // per assignment, before it is evaluated
constexpr std::size_t kKeptSteps = 256;
constexpr double kLeastMove = 1e-3;    // seconds; a shorter move says little about bandwidth
constexpr int kMostBatches = 1 << 16;  // per step

/// "rank 1 takes 1.9 times as long as the others for the same layers"; empty if all are alike.
std::string different_ranks(const std::vector<double>& factors) {
  constexpr int kNamed = 4;
  std::string text;
  int different = 0;
  for (std::size_t rank = 0; rank < factors.size(); ++rank)
    if (factors[rank] != 1 && ++different <= kNamed)
      text += fmt::format("{}rank {} takes {:.2g} times", different > 1 ? ", " : "", rank,
                          factors[rank]);
  if (different > kNamed) text += fmt::format(", and {} more differ", different - kNamed);
  return different == 0 ? "" : text + " as long as the others for the same layers";
}

/// ", batch 8 -> 16" and why it is less than `wanted`; empty if the batch stays as wanted.
std::string batch_text(std::int64_t before, std::int64_t after, std::int64_t wanted,
                       std::int64_t steps_left) {
  if (after == before && after >= wanted) return "";
  std::string text = fmt::format(", batch {}", before);
  if (after != before) text += fmt::format(" -> {}", after);
  if (after < wanted)
    text +=
        fmt::format(" (not {}: {} left do not divide evenly)", wanted, counted(steps_left, "step"));
  return text;
}

}  // namespace

Repartition::Repartition(const RunConfig& config, const Trainer& trainer, Backend& backend,
                         int threads, Outlook outlook)
    : config_(config),
      policy_(lookup(layout_policies(), config.elastic.policy, "layout policy", "elastic.policy")),
      options_(layout_options(config)),
      backend_(backend),
      threads_(threads),
      outlook_(std::move(outlook)),
      costs_(trainer.job().model),
      start_(start_of(trainer.asked(), trainer.assignment())) {
  start_.frozen_units = config.freeze.units;  // a checkpoint may have more
}

void Repartition::consider(const RunView& view, Trainer& trainer, Change& change) {
  if (config_.elastic.policy == "none") {
    if (change.next)
      costs_.add(measure_steps(trainer, backend_, outlook_.cores), trainer.layout().frozen_units);
    return;
  }
  if (seconds_.size() == kKeptSteps) seconds_.erase(seconds_.begin());
  seconds_.push_back(view.seconds);
  settled_ = std::min(settled_ + 1, kMeasuredSteps);
  wanted_.reset();
  if ((!change.next && !view.due(config_.elastic.every)) || settled_ < kMeasuredSteps) return;
  // A run may resume from here with a larger run.steps, and must then have made the same decisions
  // as if it had been that long. With measured times, a change after the last step never pays off.
  if (policy_.by_times && view.step == view.steps) return;
  if (std::optional<RunEvent> event = outcome()) change.events.push_back(std::move(*event));
  const double began = concertina::now();
  const Request asked =
      change.next ? change.next->request : trainer.asked_with_frozen(trainer.layout().frozen_units);
  const Assignment now = change.next ? change.next->assignment : trainer.assignment();
  const LayoutForecast forecast(trainer.job(), trainer.assignment(), measure(trainer));
  const LayoutView at{.job = trainer.job(),
                      .asked = asked,
                      .now = now,
                      .steps_left = view.steps - view.step,
                      .options = options_,
                      .forecast = forecast,
                      .start = start_,
                      .ahead = ahead(view, trainer.job(), now.frozen_units())};
  LayoutDecision decision = policy_.decide(at);
  if (policy_.by_times) report_ranks(trainer.world().rank() == 0, decision);
  moves_ = decision.next.has_value();
  wanted_ = decision.next ? decision.next->step_seconds : decision.step_seconds;
  record(decision, at.steps_left, trainer, change);
  change.events.back().facts["decision_s"] = concertina::now() - began;
  if (!different_.empty()) change.events.back().facts["rank_factors"] = costs_.machine().factors;
  if (decision.next) change.next = std::move(decision.next);
  if (!change.next) predicted_ = wanted_;
}

/// Adds the ranks that are slower or faster than the others to the reason for `decision`. If the
/// layout does not change, rank 0 (`leads`) logs these ranks whenever they change.
void Repartition::report_ranks(bool leads, LayoutDecision& decision) {
  std::vector<std::size_t> different;
  const std::vector<double>& factors = costs_.machine().factors;
  for (std::size_t rank = 0; rank < factors.size(); ++rank)
    if (factors[rank] != 1) different.push_back(rank);
  const bool news = std::exchange(different_, different) != different;
  std::string text = different_ranks(factors);
  if (news && different.empty()) text = "all ranks again take the same time for the same layers";
  if (!text.empty()) decision.reason = text + "; " + decision.reason;
  if (news && leads && !decision.next) log::info("{}", text);
}

/// The predicted freezes after this step that freeze more units than are frozen now.
std::vector<LayoutPeriod> Repartition::ahead(const RunView& view, const Job& job,
                                             int frozen) const {
  std::vector<LayoutPeriod> periods;
  for (const ForeseenFreeze& freeze : outlook_.freezes) {
    const int units = units_of_layers(job.model, freeze.layers);
    if (freeze.step <= view.step || units <= frozen) continue;
    const std::int64_t left = view.steps - freeze.step;
    if (!periods.empty()) periods.back().steps -= left;
    periods.push_back({units, left});
    frozen = units;
  }
  return periods;
}

void Repartition::record(const LayoutDecision& decision, std::int64_t steps_left,
                         const Trainer& trainer, Change& change) {
  const std::string from = describe(trainer.asked(), trainer.assignment());
  RunEvent event{EventKind::layout,
                 {{"from", from},
                  {"to", from},
                  {"why", decision.reason},
                  {"predicted_step_before_s", decision.step_seconds},
                  {"predicted_step_s", *wanted_}}};
  if (decision.next) {
    const auto& [request, next, step_seconds, move_seconds] = *decision.next;
    const std::string to = describe(request, next);
    event.facts["to"] = to;
    event.facts["predicted_move_s"] = move_seconds;
    const std::int64_t batch = trainer.job().batch(), before = trainer.assignment().batches * batch,
                       after = next.batches * batch;
    if (after != before) event.facts.update({{"batch_before", before}, {"batch", after}});
    const int wanted = options_.grows ? replicas_of(request, next.layout) / start_.replicas : 1;
    change.reasons.push_back(fmt::format("{} -> {}{}: {}", from, to,
                                         batch_text(before, after, wanted * batch, steps_left),
                                         decision.reason));
    change.cause = change.events.size();
  }
  change.events.push_back(std::move(event));
}

void Repartition::adopted(const Change& change, const Adoption& adoption) {
  batches_ = change.next->assignment.batches;
  if (config_.elastic.policy == "none") return;
  const Assignment& now = change.next->assignment;
  layout_ = layout_json(change.next->request, now.layout);
  world_ = now.world;
  predicted_ = wanted_;
  if (change.next->move_seconds > 0) learn(*change.next, adoption);
  seconds_.clear();
  settled_ = 0;
}

/// Updates the rates from a predicted change, so that the next prediction uses measured values.
void Repartition::learn(const LayoutChoice& next, const Adoption& adoption) {
  const double predicted = next.move_seconds - predicted_rates_.rebuild_s;
  if (predicted > kLeastMove && adoption.move_seconds > kLeastMove)
    move_factor_ = predicted_rates_.move_factor * adoption.move_seconds / predicted;
  rebuild_ = adoption.seconds - adoption.move_seconds;
}

/// Reports how accurate the last prediction was.
std::optional<RunEvent> Repartition::outcome() {
  if (!predicted_ || seconds_.size() < kMeasuredSteps) return std::nullopt;
  const double measured = median(seconds_);
  RunEvent event{EventKind::layout_outcome,
                 {{"predicted_step_s", *predicted_},
                  {"measured_step_s", measured},
                  {"steps", seconds_.size()},
                  {"forecast_of", moves_ ? "another layout" : "the same layout"}}};
  predicted_.reset();
  return event;
}

std::vector<RunEvent> Repartition::closing() {
  if (std::optional<RunEvent> event = outcome()) return {*event};
  return {};
}

MoveRates Repartition::moves(Trainer& trainer) {
  const Watchdog::Patience patience(trainer.watchdog(), "measuring the cost of a layout change");
  if (!links_) probe(trainer);
  const std::array mine{rebuild_ > 0 ? rebuild_ : trainer.build_seconds(), move_factor_};
  const std::vector<double> slowest = largest_values(trainer.world(), mine);
  MoveRates rates = links_->moves;
  rates.rebuild_s = slowest[0];
  rates.move_factor = slowest[1];
  return predicted_rates_ = rates;
}

/// Gathers everything measured so far about the machine and the model. Collective.
ForecastInput Repartition::measure(Trainer& trainer) {
  const Watchdog::Patience patience(trainer.watchdog(), "measuring for the layout policy");
  if (!links_) probe(trainer);
  costs_.add(measure_steps(trainer, backend_, outlook_.cores), trainer.layout().frozen_units);
  MachineModel machine = with_links(costs_.machine(), *links_);
  machine.moves = moves(trainer);
  const std::vector<double> limits = memory_limits(trainer);
  const std::array mine{static_cast<double>(outlook_.cores)};
  const std::vector<double> cores = largest_values(trainer.world(), mine);
  const auto refusal = [this, limits, &job = trainer.job()](const Assignment& next) {
    const std::vector<RankMemory> ranks = predict_memory(config_, job, next, threads_);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (static_cast<double>(ranks[rank].total()) > limits[rank])
        return fmt::format("rank {} would need {} of {}", rank, gib_text(ranks[rank].total()),
                           gib_text(static_cast<std::size_t>(limits[rank])));
    return std::string();
  };
  return {.units = costs_.full(),
          .machine = machine,
          .cache = outlook_.cache ? outlook_.cache() : CacheForecast{},
          .kinds = trainer.state().kinds().size(),
          .hosts = trainer.hosts(),
          .cores = static_cast<int>(cores[0]),
          .move_memory = static_cast<std::size_t>(config_.parallel.move_memory.bytes),
          .refusal = refusal};
}

void Repartition::probe(Trainer& trainer) {
  const std::vector<int>& hosts = trainer.hosts();
  MachineModel machine = probe_classes(trainer.world(), hosts, trainer.job().model.boundary_bytes);
  probe_move(trainer.world(), trainer.tensors(), trainer.tensor_memory(), hosts,
             trainer.assignment(), machine.moves);
  links_ = machine_from_json(gather_json(trainer.world(), to_json(machine))[0], "rank 0's probe");
}

/// The bytes that each rank may use: what it has allocated, plus its share of the free memory.
std::vector<double> Repartition::memory_limits(Trainer& trainer) {
  const std::optional<std::size_t> free = free_for_rank(trainer);
  const double held =
      static_cast<double>(trainer.state().bytes() + trainer.engine().arena().capacity());
  const double limit =
      free ? held + static_cast<double>(*free) : std::numeric_limits<double>::infinity();
  return gather_values(trainer.world(), std::array{limit});
}

nlohmann::json Repartition::progress() const {
  nlohmann::json progress = {{"first_world", start_.world},
                             {"first_stages", start_.stages},
                             {"first_replicas", start_.replicas},
                             {"settled", settled_}};
  if (options_.grows) progress["batches"] = batches_;
  if (!layout_.is_null()) progress.update({{"layout", layout_}, {"world", world_}});
  return progress;
}

void Repartition::restore(const nlohmann::json& progress, Trainer& trainer,
                          const std::string& source) {
  if (!progress.contains("batches") && options_.grows && trainer.done() > 0)
    throw_failure("the checkpoint lacks state for elastic.batch = \"grows\"", source,
                  kOtherCheckpoint);
  if (progress.is_null()) return;
  std::optional<Request> stored;
  int batches = 1;
  try {
    start_.world = progress.value("first_world", start_.world);
    start_.stages = progress.value("first_stages", start_.stages);
    start_.replicas = progress.value("first_replicas", start_.replicas);
    batches = progress.value("batches", batches);
    // Only the times of this launch's steps are known.
    if (!policy_.by_times) settled_ = progress.value("settled", kMeasuredSteps);
    // Kept even if the world size differs, because a later launch may have the stored world size.
    world_ = progress.value("world", 0);
    layout_ = progress.value("layout", nlohmann::json());
    if (world_ == trainer.world().size() && config_.elastic.policy != "none")
      stored = with_stored_layout(trainer.asked(), progress.at("layout"));
  } catch (const nlohmann::json::exception& error) {
    throw_failure(fmt::format("cannot read the layout in the checkpoint: {}", error.what()), source,
                  kOtherCheckpoint);
  }
  if (start_.world < 1 || start_.stages < 1 || start_.stages > trainer.job().units() ||
      start_.replicas < 1 || batches < 1 || batches > kMostBatches)
    throw_failure(
        fmt::format(
            "invalid layout state: {} batches per step, {} initial stages, {} initial replicas",
            batches, start_.stages, start_.replicas),
        source, "an older checkpoint");
  // run.steps may have changed. A layout for a different number of batches per step is useless.
  const std::int64_t left = std::max<std::int64_t>(0, config_.run.steps - trainer.done());
  batches_ = grown_batches(batches, 1, left);
  if (batches_ != batches) {
    stored.reset();
    layout_ = nullptr;
    const std::int64_t batch = trainer.job().batch();
    if (trainer.world().rank() == 0)
      log::warn(
          "the batch changes from {} to {}: {} left, not a multiple of {}; the "
          "weights will differ from those with the larger batch",
          batches * batch, batches_ * batch, counted(left, "step"), batches);
  }
  if (stored || batches_ > 1) resume(std::move(stored), batches_, trainer);
}

/// Resumes in the stored layout or, if there is none, in the config's layout.
void Repartition::resume(std::optional<Request> stored, int batches, Trainer& trainer) {
  const int frozen = trainer.layout().frozen_units;
  const bool grown = batches > 1;
  Request request = stored ? *stored : trainer.asked_with_frozen(frozen);
  if (request.file && grown)
    throw_input(fmt::format("each step of this run executes {} batches, but a schedule file "
                            "describes a single batch",
                            batches),
                config_.where("parallel.schedule"), "a registered schedule");
  if (!stored) request.layout = with_batches(std::move(request.layout), batches);
  request.frozen_units = frozen;
  request.batches = batches;
  Assignment next = assign(trainer.job(), request);
  if (stored) layout_ = layout_json(request, next.layout);
  if (trainer.world().rank() == 0)
    log::info("restored {}{}", describe(request, next),
              grown ? fmt::format(", batch {}", batches * trainer.job().batch()) : "");
  trainer.adopt(std::move(request), std::move(next));
}

}  // namespace concertina
