#include "experiments/record/tracing.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "core/error.h"
#include "core/log.h"
#include "experiments/machine/gather.h"
#include "io/file.h"
#include "io/run_files.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

constexpr std::int64_t kWarmup = 2;
constexpr std::size_t kActions = 400000;  // about 150 MB of trace.json

std::size_t action_count(const Plan& plan) {
  std::size_t count = 0;
  for (const auto& row : plan.rows) count += row.size();
  return count;
}

/// Passes all numbers of a record to `number` and its times to `time`, in the same order for
/// packing and unpacking.
template <class Record, class Number, class Time>
void each_number(Record& record, const Number& number, const Time& time) {
  const auto action = [&](auto& one) {
    number(one.kind), number(one.stage), number(one.microbatch);
  };
  number(record.step), time(record.start), time(record.end);
  const auto each = [&](auto& list, const auto& see) {
    auto size = list.size();
    number(size);
    if constexpr (!std::is_const_v<Record>) list.resize(size);
    for (auto& one : list) see(one);
  };
  each(record.actions, [&](auto& one) { time(one.start), time(one.end), number(one.busy); });
  each(record.waits,
       [&](auto& one) { number(one.what), time(one.start), time(one.end), action(one.transfer); });
  each(record.completions, [&](auto& one) { time(one.time), action(one.transfer); });
  each(record.memory, [&](auto& one) {
    time(one.time), number(one.use.activations);
    number(one.use.saved_bytes), number(one.use.boundary_bytes);
  });
}

/// Converts times to rank 0's clock.
void pack(const StepRecord& record, const ClockMap& clock, std::vector<double>& out) {
  each_number(
      record, [&](const auto& value) { out.push_back(static_cast<double>(value)); },
      [&](double seconds) { out.push_back(clock(seconds)); });
}

/// Unpacks the record at `next` and advances `next`; times are relative to `origin`.
StepRecord unpack(const double*& next, double origin) {
  StepRecord record;
  each_number(
      record,
      [&](auto& value) { value = static_cast<std::remove_reference_t<decltype(value)>>(*next++); },
      [&](double& seconds) { seconds = *next++ - origin; });
  return record;
}

/// Gathers each stage's bytes per microbatch from the ranks that have the stage. Collective.
void gather_sizes(const Trainer& trainer, Communicator& world, RunTrace& trace) {
  const auto stages = static_cast<std::size_t>(trace.layout.stage_count());
  std::vector<double> mine(2 * stages + 1);
  for (std::size_t s = 0; s < stages; ++s) {
    const Stage* stage = trainer.engine().stage(static_cast<int>(s));
    if (stage == nullptr) continue;
    const StageMemory memory = stage->memory();
    mine[2 * s] = static_cast<double>(align_up(memory.saved_bytes));
    mine[2 * s + 1] = static_cast<double>(align_up(memory.grad_bytes));
    mine.back() = static_cast<double>(memory.boundary_bytes);
  }
  const std::vector<double> all = gather_values(world, mine);
  trace.saved_bytes.assign(stages, 0);
  trace.grad_bytes.assign(stages, 0);
  trace.boundary_bytes = 0;  // of any working rank
  for (std::size_t i = 0; i < all.size(); i += mine.size()) {
    trace.boundary_bytes =
        std::max(trace.boundary_bytes, static_cast<std::size_t>(all[i + mine.size() - 1]));
    for (std::size_t s = 0; s < stages; ++s) {
      trace.saved_bytes[s] += static_cast<std::size_t>(all[i + 2 * s]);
      trace.grad_bytes[s] += static_cast<std::size_t>(all[i + 2 * s + 1]);
    }
  }
}

/// A received message is complete for the sender, too, even if the sender checks only later.
void align_sends(const PlanIndex& index, std::vector<StepRecord>& ranks) {
  std::vector<double> received(static_cast<std::size_t>(index.nodes()),
                               std::numeric_limits<double>::infinity());
  for (const StepRecord& record : ranks)
    for (const Completion& one : record.completions)
      if (!is_send(one.transfer.kind))
        received[static_cast<std::size_t>(index.find(counterpart(one.transfer)))] = one.time;
  for (StepRecord& record : ranks)
    for (Completion& one : record.completions)
      if (is_send(one.transfer.kind))
        one.time = std::min(one.time, received[static_cast<std::size_t>(index.find(one.transfer))]);
}

}  // namespace

TraceWindow choose_window(std::int64_t done, std::int64_t steps, int wanted, std::size_t actions) {
  const std::int64_t left = std::max<std::int64_t>(0, steps - done);
  const auto fit = static_cast<std::int64_t>(kActions / std::max<std::size_t>(1, actions));
  const std::int64_t count =
      std::min({static_cast<std::int64_t>(wanted), left, std::max<std::int64_t>(1, fit)});
  return {done + 1 + std::min(kWarmup, left - count), static_cast<int>(count)};
}

namespace {

/// Stores the layout and plan of the working ranks, renumbered without the spare ones.
void take_working(const Assignment& assignment, RunTrace& trace) {
  trace.layout = assignment.layout;
  for (Pipeline& pipeline : trace.layout.pipelines)
    for (StagePlacement& stage : pipeline.stages) stage.rank = assignment.working_index(stage.rank);
  for (const int rank : assignment.working)
    trace.plan.rows.push_back(assignment.plan.rows[static_cast<std::size_t>(rank)]);
}

/// The working ranks on rank 0, which has the gathered data; empty on other ranks.
std::vector<std::size_t> ranks_of(const Assignment& assignment, std::size_t gathered) {
  if (gathered == 0) return {};
  return {assignment.working.begin(), assignment.working.end()};
}

}  // namespace

RunTrace gather_trace(Trainer& trainer, const RunConfig& config, const ClockOffset& early) {
  Communicator& world = trainer.world();
  const ClockMap clock(early, measure_offset(world));
  std::vector<double> mine;
  std::size_t steps = 0;  // recorded here; none on a spare rank
  for (const StepRecord& record : trainer.engine().executor().recorder().kept()) {
    if (record.step == 0) break;
    pack(record, clock, mine);
    ++steps;
  }
  const std::array head{clock.error(), static_cast<double>(steps),
                        steps > 0 ? mine[1] : std::numeric_limits<double>::infinity()};
  const std::vector<double> heads = gather_values(world, head);
  RunTrace trace;
  trace.run = config.run.name;
  trace.schedule = config.parallel.schedule;
  take_working(trainer.assignment(), trace);
  gather_sizes(trainer, world, trace);
  const std::vector<std::vector<double>> all = gather_on_first(world, mine);
  double origin = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < heads.size(); i += head.size()) {
    trace.clock_error = std::max(trace.clock_error, heads[i]);
    steps = std::max(steps, static_cast<std::size_t>(heads[i + 1]));
    origin = std::min(origin, heads[i + 2]);
  }
  trace.steps.resize(steps);
  for (const std::size_t rank : ranks_of(trainer.assignment(), all.size())) {
    const double* next = all[rank].data();
    for (auto& step : trace.steps) step.push_back(unpack(next, origin));
  }
  const PlanIndex index(trace.plan, trace.layout);
  for (auto& step : trace.steps) align_sends(index, step);
  return trace;
}

std::vector<TraceWindow> trace_windows(std::int64_t done, std::int64_t steps, const LogSection& log,
                                       std::size_t actions) {
  if (log.trace_at.empty() && log.trace_every == 0) {
    const TraceWindow window = choose_window(done, steps, log.trace, actions);
    return window.count > 0 ? std::vector{window} : std::vector<TraceWindow>{};
  }
  std::vector<TraceWindow> windows;
  std::int64_t from = done + 1;  // no window starts earlier
  while (from <= steps) {
    std::int64_t first = steps + 1;
    for (const std::int64_t step : log.trace_at)
      if (step >= from) first = std::min(first, step);
    if (log.trace_every > 0)
      first = std::min(first, (from + log.trace_every - 1) / log.trace_every * log.trace_every);
    if (first > steps) break;
    // As many steps as the first window of a launch that starts there would have.
    const int count = choose_window(first - 1, steps, log.trace, actions).count;
    if (count == 0) break;
    windows.push_back({first, count});
    from = first + count;
  }
  return windows;
}

Tracing::Tracing(Trainer& trainer, const RunConfig& config, std::int64_t done,
                 std::string directory)
    : trainer_(trainer),
      config_(config),
      directory_(std::move(directory)),
      windows_(trace_windows(done, config.run.steps, config.log,
                             action_count(trainer.assignment().plan))) {}

/// Opens a window at its first step, or at a batch of steps that includes it.
void Tracing::before_step(std::int64_t step) {
  const int batches = trainer_.assignment().batches;
  while (records() && windows_[next_].end() <= step) ++next_;
  TraceRecorder& recorder = trainer_.engine().executor().recorder();
  if (!records() || windows_[next_].first >= step + batches || !recorder.kept().empty()) return;
  const std::int64_t count = (windows_[next_].end() - step + batches - 1) / batches;
  recorder.keep(step, static_cast<int>(count), batches);
  early_ = measure_offset(trainer_.world());
}

void Tracing::after_step(std::int64_t step) {
  if (records() && step + trainer_.assignment().batches >= windows_[next_].end()) write_window();
}

void Tracing::before_change() {
  if (!trainer_.engine().executor().recorder().kept().empty()) write_window();
}

void Tracing::write_window() {
  RunTrace trace = gather_trace(trainer_, config_, early_);
  trainer_.engine().executor().recorder().release();
  const std::int64_t first = windows_[next_++].first;
  if (trainer_.world().rank() > 0) return;
  try {
    const std::string text = to_chrome_trace(trace);
    atomic_replace(trace_path(directory_), text);
    if (!config_.log.trace_at.empty() || config_.log.trace_every > 0)
      atomic_replace(trace_path(directory_, first), text);
  } catch (const Error& error) {
    log::warn("cannot write the trace: {} ({}); training continues", error.message(),
              error.where());
  }
  last_ = std::move(trace);
}

}  // namespace concertina
