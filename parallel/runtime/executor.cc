#include "parallel/runtime/executor.h"

#include <unistd.h>

#include <algorithm>

#include "core/error.h"
#include "core/failpoint.h"
#include "core/index.h"

namespace concertina {

namespace {

int units_of(const StagePlacement& stage) {
  return stage.last_unit - stage.first_unit;
}

/// Number of units in all overlapped passes.
std::size_t most_turns(const Layout& layout, const std::vector<Action>& row) {
  const std::vector<StagePlacement> stages = layout.stages();
  const auto units = [&](const Action& action) { return units_of(stages[at(action.stage)]); };
  int turns = 0;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (row[i].overlapped) turns += units(row[i]) + units(row[i + 1]);
  return static_cast<std::size_t>(turns);
}

/// Counts each unit's start, the end of each of its passes, and the packing of its weights.
std::size_t most_laps(const Layout& layout, const std::vector<Action>& row, int rank) {
  const std::vector<StagePlacement> stages = layout.stages();
  int laps = 1;
  for (const Action& action : row)
    if (is_compute(action.kind))
      laps += (action.kind == Kind::B ? 3 : 2) * units_of(stages[at(action.stage)]);
  for (const StagePlacement& stage : stages)
    if (stage.rank == rank) laps += units_of(stage);
  return static_cast<std::size_t>(laps);
}

/// Hangs the rank in its action if a test requests it.
void meet_failpoints(std::int64_t step, int rank) {
  if (failpoint("hang", {{"step", step}, {"rank", rank}}))
    for (volatile bool forever = true; forever;) {
    }
  if (failpoint("block", {{"step", step}, {"rank", rank}}))
    for (;;) ::pause();
}

}  // namespace

RowLosses::RowLosses(const std::vector<LocalStage>& stages, int microbatches)
    : slot_(static_cast<std::size_t>(microbatches)), sums_(static_cast<std::size_t>(microbatches)) {
  for (const LocalStage& one : stages) {
    if (!one.info.last) continue;
    rows_ = one.stage->memory().loss_rows;
    for (int m = one.info.first_microbatch; m < one.info.last_microbatch; ++m)
      slot_[static_cast<std::size_t>(m)] = slots_++;
  }
  kept_.reserve(slots_);
}

void RowLosses::attach(Arena& arena, Memory& memory) {
  memory_ = &memory;
  all_ = arena.take(slots_ * rows_, DType::f32, "losses of rows");
  if (!memory.on_host()) host_.reserve(all_.bytes());
}

void RowLosses::begin() {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  kept_.clear();
}

void RowLosses::keep(int microbatch, View rows) {
  CONCERTINA_CHECK(rows.count == rows_ && kept_.size() < slots_, "{} losses of microbatch {}",
                   rows.count, microbatch);
  memory_->copy(rows.data, rows_of(microbatch, all_).data, rows.bytes());
  kept_.push_back(microbatch);
}

void RowLosses::read() {
  if (kept_.empty()) return;
  const View host = host_view(*memory_, all_, host_);
  for (const int microbatch : kept_) {
    const View rows = rows_of(microbatch, host);
    double& sum = sums_[static_cast<std::size_t>(microbatch)];
    for (std::size_t r = 0; r < rows.count; ++r) sum += static_cast<double>(rows.f32()[r]);
  }
}

Executor::Executor(const Layout& layout, const Plan& plan, const std::vector<Stage*>& stages,
                   int rank, int microbatches, KernelClock& clock)
    : layout_(layout),
      row_(plan.rows[static_cast<std::size_t>(rank)]),
      memory_(plan_memory(plan, layout, rank)),
      recorder_(row_, rank, most_turns(layout_, row_), clock),
      transfers_(layout_, recorder_),
      stages_(layout_, memory_, stages, microbatches, transfers_),
      unit_clock_(layout.unit_count(), most_laps(layout_, row_, rank), clock),
      losses_(stages_.all(), microbatches) {
  for (const LocalStage& one : stages_.all()) one.stage->observe(&unit_clock_);
}

void Executor::connect(Communicator& world, GradientExchange& exchange, Watchdog* watchdog) {
  exchange_ = &exchange;
  watchdog_ = watchdog;
  transfers_.connect(world, watchdog, row_, memory_.boundaries());
}

/// Waits until `action` can start.
void Executor::await(const Action& action) {
  if (is_compute(action.kind)) stages_.begin(action);
  if (action.kind != Kind::STEP) return;
  transfers_.reclaim_all();
  if (watchdog_ != nullptr) watchdog_->at("REDUCE");
  const double start = recorder_.mark();
  exchange_->finish();
  recorder_.waited(WaitFor::reduction, action, start);
}

Executor::Pass Executor::begin_pass(const Action& action, const StepInput& input) {
  note_memory();
  Pass pass{action, &stages_.of(action.stage), stages_.io(action, input)};
  const Stage& stage = *pass.stage->stage;
  if (action.kind == Kind::F && stage.first_unit() == 0 && stage.first_trained() > 0)
    pass.frozen = input.frozen;
  if (pass.frozen != nullptr) pass.restored = pass.frozen->restore(stage, pass.io);
  return pass;
}

/// Runs the next unit, then advances pending transfers.
void Executor::advance(Pass& pass) {
  unit_clock_.start();
  Stage& stage = *pass.stage->stage;
  const bool forward = pass.action.kind == Kind::F;
  const int unit =
      forward ? stage.first_unit() + pass.restored + pass.done : stage.last_unit() - 1 - pass.done;
  switch (pass.action.kind) {
    case Kind::F:
      stage.forward_unit(unit, pass.io);
      if (pass.frozen != nullptr && unit + 1 == pass.frozen->kept_units())
        pass.frozen->keep(pass.io, stage.frozen_output(unit, pass.io));
      break;
    case Kind::B:
      stage.backward_unit(unit, pass.io, *exchange_);
      break;
    case Kind::I:
      stage.backward_input_unit(unit, pass.io);
      break;
    default:
      stage.backward_weight_unit(unit, pass.io, *exchange_);
  }
  ++pass.done;
  transfers_.progress();
  // Backward passes with weight gradients advance the exchange in the gradient sink.
  if (forward || pass.action.kind == Kind::I) exchange_->progress();
}

void Executor::end_pass(const Pass& pass) {
  const Action& action = pass.action;
  if (action.kind == Kind::F && pass.stage->info.last)
    losses_.keep(action.microbatch, pass.stage->stage->row_loss(pass.io));
  stages_.end(action);
  note_memory();
}

void Executor::compute(std::size_t position, const StepInput& input) {
  Pass pass = begin_pass(row_[position], input);
  while (pass.done < pass.units()) advance(pass);
  end_pass(pass);
}

/// Interleaves the units so that both passes end together.
void Executor::compute_pair(std::size_t position, const StepInput& input) {
  Pass first = begin_pass(row_[position], input), second = begin_pass(row_[position + 1], input);
  while (first.done < first.units() || second.done < second.units()) {
    // A pass has no unit to run if all were restored.
    const bool turn =
        first.units() > 0 && first.done * second.units() <= second.done * first.units();
    recorder_.turn(turn ? position : position + 1);
    advance(turn ? first : second);
  }
  end_pass(first);
  end_pass(second);
}

void Executor::begin_step(std::int64_t step) {
  recorder_.begin_step(step);
  unit_clock_.begin_step();
}

void Executor::end_step() {
  recorder_.end_step();
  recorder_.worked(unit_clock_.end_step());
}

void Executor::run(const StepInput& input, const std::function<void()>& update) {
  losses_.begin();
  for (std::size_t i = 0; i < row_.size(); ++i) {
    const Action& action = row_[i];
    await(action);
    if (action.overlapped) await(row_[i + 1]);
    if (watchdog_ != nullptr) {
      if (action.kind == Kind::STEP)
        watchdog_->at("STEP");
      else
        // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): names are literals
        watchdog_->at(name_of(action.kind).data(), action.stage, action.microbatch);
    }
    recorder_.begin(i);
    if (action.overlapped)
      compute_pair(i, input);
    else if (is_compute(action.kind))
      compute(i, input);
    else if (action.kind == Kind::STEP)
      losses_.read(), update();
    else if (action.kind == Kind::REDUCE)
      exchange_->progress();  // STEP waits for all exchanges
    else
      stages_.start_transfer(action), note_memory();
    if (is_compute(action.kind))
      meet_failpoints(recorder_.last().step, layout_.stage(action.stage).rank);
    recorder_.end(i);
    if (action.overlapped) ++i;
  }
}

}  // namespace concertina
