#include "experiments/record/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "experiments/run/layout_json.h"
#include "io/chrome_trace.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

std::string_view kind_name(Kind kind) {
  return kind == Kind::REDUCE ? "REDUCE" : name_of(kind);
}

using Json = nlohmann::ordered_json;

constexpr int kCompute = 0, kSend = 1, kReceive = 100;  // first track of each kind

Json about(const RunTrace& trace) {
  return {{"program", "concertina"},
          {"run", trace.run},
          {"schedule", trace.schedule},
          {"layout", to_json(trace.layout, StageForm::brief)},
          {"frozen_units", trace.layout.frozen_units},
          {"saved_bytes", trace.saved_bytes},
          {"grad_bytes", trace.grad_bytes},
          {"boundary_bytes", trace.boundary_bytes},
          {"clock_error_s", trace.clock_error},
          {"plan", to_text(trace.plan)}};
}

/// Returns the lowest lane of a track that is free from `start` on, and occupies it until `end`.
int take_lane(std::vector<double>& lanes, double start, double end) {
  std::size_t lane = 0;
  while (lane < lanes.size() && lanes[lane] > start) ++lane;
  if (lane == lanes.size()) lanes.push_back(0);
  lanes[lane] = end;
  return static_cast<int>(lane);
}

/// Writes the events of one rank and step.
class Writer {
 public:
  Writer(const RunTrace& trace, ChromeTrace& out)
      : trace_(trace),
        out_(out),
        index_(trace.plan, trace.layout),
        reductions_(find_reductions(trace)) {}

  void write(std::size_t step, int rank) {
    const StepRecord& record = at(step, rank);
    const auto& row = trace_.plan.rows[static_cast<std::size_t>(rank)];
    out_.slice(rank, kCompute, "step", fmt::format("step {}", record.step), record.start,
               record.end, fmt::format(R"({{"step":{}}})", record.step));
    for (std::size_t i = 0; i < row.size(); ++i)
      out_.slice(rank, kCompute, "action", title(row[i], trace_.layout), record.actions[i].start,
                 record.actions[i].end,
                 fmt::format(R"({{"i":{},"busy_us":{:.3f},{}}})", i, record.actions[i].busy * 1e6,
                             about(row[i])));
    for (const WaitTime& wait : record.waits)
      out_.slice(
          rank, kCompute, "wait", wait_title(wait), wait.start, wait.end,
          fmt::format(R"({{"for":"{}","of":"{}"}})",
                      kWaitNames[static_cast<std::size_t>(wait.what)], to_text(wait.transfer)));
    std::array<std::vector<double>, 2> lanes;
    for (const Completion& completion : by_start(step, rank))
      transfer(step, rank, completion, lanes[is_send(completion.transfer.kind) ? 0 : 1]);
    for (const MemorySample& sample : record.memory)
      out_.counter(rank, "memory", sample.time,
                   fmt::format(R"({{"saved activations":{},"boundary buffers":{}}})",
                               sample.use.saved_bytes, sample.use.boundary_bytes));
    for (const MemorySample& sample : record.memory)
      out_.counter(rank, "activations", sample.time,
                   fmt::format(R"({{"microbatches":{}}})", sample.use.activations));
    for (std::size_t direction = 0; direction < lanes.size(); ++direction)
      lanes_[direction] = std::max(lanes_[direction], lanes[direction].size());
  }

  /// Writes the arrows for a step's gradient exchange: for each stage's units, from the REDUCE of
  /// the last holder, for which the others waited, to the STEP of each other holder.
  void write_exchange(std::size_t step) {
    for (const auto& [units, holders] : reductions_) {
      const auto last = std::ranges::max_element(
          holders, {}, [&](const Place& one) { return action_at(step, one).start; });
      for (const Place& other : holders) {
        if (other.rank == last->rank) continue;
        const int stop = last_step(other.rank);
        if (stop < 0) continue;
        const ActionTime& from = action_at(step, *last);
        const ActionTime& to = action_at(step, {other.rank, stop});
        const std::uint64_t id = message_ids() + exchange_ids_++;
        out_.arrow_start(last->rank, kCompute, id, from.start, "gradients");
        out_.arrow_end(other.rank, kCompute, id,
                       std::clamp(from.end, to.start + (to.end - to.start) / 2, to.end),
                       "gradients");
      }
    }
  }

  /// The maximum numbers of send and receive tracks of any rank and step.
  const std::array<std::size_t, 2>& lanes() const { return lanes_; }

 private:
  /// The REDUCE of each holder of a stage, by the stage's units.
  static std::map<std::pair<int, int>, std::vector<Place>> find_reductions(const RunTrace& trace) {
    std::map<std::pair<int, int>, std::vector<Place>> found;
    for (int rank = 0; rank < trace.ranks(); ++rank) {
      const auto& row = trace.plan.rows[static_cast<std::size_t>(rank)];
      for (int i = 0; i < std::ssize(row); ++i) {
        const Action& action = row[static_cast<std::size_t>(i)];
        if (action.kind != Kind::REDUCE) continue;
        const StagePlacement& stage = trace.layout.stage(action.stage);
        found[{stage.first_unit, stage.last_unit}].push_back({rank, i});
      }
    }
    return found;
  }

  /// Position of the STEP of `rank`, or -1.
  int last_step(int rank) const {
    const auto& row = trace_.plan.rows[static_cast<std::size_t>(rank)];
    const auto found = std::ranges::find(row, Kind::STEP, &Action::kind);
    return found == row.end() ? -1 : static_cast<int>(found - row.begin());
  }

  const ActionTime& action_at(std::size_t step, const Place& place) const {
    return at(step, place.rank).actions[static_cast<std::size_t>(place.position)];
  }

  /// The number of ids for message arrows; those of the gradient exchange follow.
  std::uint64_t message_ids() const {
    return trace_.steps.size() * static_cast<std::uint64_t>(index_.nodes());
  }

  const StepRecord& at(std::size_t step, int rank) const {
    return trace_.steps[step][static_cast<std::size_t>(rank)];
  }

  /// The event's arguments: the action, and the bytes that it sends, receives or saves.
  std::string about(const Action& action) const {
    std::string text = fmt::format(R"("kind":"{}")", kind_name(action.kind));
    if (action.stage >= 0)
      text += fmt::format(R"(,"pipeline":{},"stage":{})", trace_.layout.pipeline_of(action.stage),
                          stage_in_pipeline(trace_.layout, action.stage));
    if (action.microbatch >= 0) text += fmt::format(R"(,"microbatch":{})", action.microbatch);
    if (is_transfer(action.kind)) text += fmt::format(R"(,"bytes":{})", trace_.boundary_bytes);
    if (action.kind == Kind::F && index_.stages()[static_cast<std::size_t>(action.stage)].trains)
      text +=
          fmt::format(R"(,"bytes":{})", trace_.saved_bytes[static_cast<std::size_t>(action.stage)]);
    return text;
  }

  std::string wait_title(const WaitTime& wait) const {
    switch (wait.what) {
      case WaitFor::receive:
      case WaitFor::send:
        return "wait for " + title(wait.transfer, trace_.layout);
      case WaitFor::reduction:
        return "wait for gradients";
      case WaitFor::ranks:
        return "wait for all ranks";
      default:
        return "wait for weights";
    }
  }

  /// The time at which both ends of a transfer had been posted, if known.
  double start_of(std::size_t step, const Completion& completion) const {
    const Action other = counterpart(completion.transfer);
    double start = 0;
    for (const Action& end : {completion.transfer, other}) {
      const int node = index_.find(end);
      if (node < 0 || (is_send(completion.transfer.kind) && end == other)) continue;
      const Place place = index_.place(node);
      start = std::max(
          start, at(step, place.rank).actions[static_cast<std::size_t>(place.position)].start);
    }
    return std::min(start, completion.time);
  }

  std::vector<Completion> by_start(std::size_t step, int rank) const {
    std::vector<std::pair<double, Completion>> order;
    for (const Completion& one : at(step, rank).completions)
      order.emplace_back(start_of(step, one), one);
    std::ranges::stable_sort(order, {}, &std::pair<double, Completion>::first);
    std::vector<Completion> result;
    for (const auto& [start, one] : order) result.push_back(one);
    return result;
  }

  void transfer(std::size_t step, int rank, const Completion& completion,
                std::vector<double>& lanes) {
    const Action& action = completion.transfer;
    const bool send = is_send(action.kind);
    const double start = start_of(step, completion), end = completion.time;
    const int track = (send ? kSend : kReceive) + take_lane(lanes, start, end);
    out_.slice(rank, track, "transfer", title(action, trace_.layout), start, end,
               fmt::format(R"({{"of":"{}",{}}})", to_text(action), about(action)));
    const int node = index_.find(send ? action : counterpart(action));
    const auto id = static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(index_.nodes()) +
                    static_cast<std::uint64_t>(node);
    if (send)
      out_.arrow_start(rank, track, id, start);
    else
      out_.arrow_end(rank, track, id, start + (end - start) / 2);
  }

  const RunTrace& trace_;
  ChromeTrace& out_;
  const PlanIndex index_;
  const std::map<std::pair<int, int>, std::vector<Place>> reductions_;
  std::uint64_t exchange_ids_ = 0;
  std::array<std::size_t, 2> lanes_{1, 1};
};

void name_tracks(const RunTrace& trace, const std::array<std::size_t, 2>& lanes, ChromeTrace& out) {
  const std::vector<int> replicas = replicas_of(trace.layout);
  for (int rank = 0; rank < trace.ranks(); ++rank) {
    std::vector<int> stages;
    int replica = 0;
    for (int s = 0; s < trace.layout.stage_count(); ++s) {
      if (trace.layout.stage(s).rank != rank) continue;
      stages.push_back(stage_in_pipeline(trace.layout, s));
      replica = replicas[static_cast<std::size_t>(trace.layout.pipeline_of(s))];
    }
    out.process(rank, fmt::format("rank {}: replica {}, stage{} {}", rank, replica,
                                  stages.size() == 1 ? "" : "s", fmt::join(stages, ", ")));
    out.track(rank, kCompute, "compute");
    for (const auto& [first, name, count] :
         {std::tuple{kSend, "send", lanes[0]}, std::tuple{kReceive, "receive", lanes[1]}})
      for (int lane = 0; lane < static_cast<int>(count); ++lane)
        out.track(rank, first + lane, lane == 0 ? name : fmt::format("{} {}", name, lane + 1));
  }
}

}  // namespace

int stage_in_pipeline(const Layout& layout, int stage) {
  return stage - layout.first_stage(layout.pipeline_of(stage));
}

std::vector<int> replicas_of(const Layout& layout) {
  std::vector<std::set<int>> seen;
  std::vector<int> replicas;
  for (const Pipeline& pipeline : layout.pipelines) {
    std::set<int> ranks;
    for (const StagePlacement& stage : pipeline.stages) ranks.insert(stage.rank);
    const auto at = std::ranges::find(seen, ranks);
    replicas.push_back(static_cast<int>(at - seen.begin()));
    if (at == seen.end()) seen.push_back(std::move(ranks));
  }
  return replicas;
}

std::string title(const Action& action, const Layout& layout) {
  if (action.kind == Kind::STEP) return "optimizer";
  const int stage = stage_in_pipeline(layout, action.stage);
  if (action.kind == Kind::REDUCE) return fmt::format("reduce stage {}", stage);
  return fmt::format("{} {} stage {}", kind_name(action.kind), action.microbatch, stage);
}

std::string to_chrome_trace(const RunTrace& trace) {
  ChromeTrace out(about(trace));
  Writer writer(trace, out);
  for (std::size_t step = 0; step < trace.steps.size(); ++step)
    for (int rank = 0; rank < trace.ranks(); ++rank) writer.write(step, rank);
  for (std::size_t step = 0; step < trace.steps.size(); ++step) writer.write_exchange(step);
  name_tracks(trace, writer.lanes(), out);
  return out.finish();
}

}  // namespace concertina
