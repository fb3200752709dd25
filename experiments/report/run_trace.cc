#include "experiments/report/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "io/chrome_trace.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCompute = 0, kSend = 1, kReceive = 100;  // first track of each
constexpr std::array<std::string_view, 5> kWaits{"receive", "send", "reduction", "ranks",
                                                 "weights"};

Json to_json(const Layout& layout) {
  Json pipelines = Json::array();
  for (const Pipeline& pipeline : layout.pipelines) {
    Json stages = Json::array();
    for (const StagePlacement& s : pipeline.stages)
      stages.push_back({s.rank, s.first_unit, s.last_unit});
    pipelines.push_back({{"microbatches", {pipeline.first_microbatch, pipeline.last_microbatch}},
                         {"stages", stages}});
  }
  return pipelines;
}

Layout layout_from(const nlohmann::json& pipelines) {
  Layout layout;
  for (const nlohmann::json& one : pipelines) {
    Pipeline& pipeline = layout.pipelines.emplace_back();
    pipeline.first_microbatch = one.at("microbatches").at(0);
    pipeline.last_microbatch = one.at("microbatches").at(1);
    for (const nlohmann::json& s : one.at("stages"))
      pipeline.stages.push_back({s.at(0), s.at(1), s.at(2)});
  }
  return layout;
}

Json about(const RunTrace& trace) {
  return {{"program", "concertina"},
          {"run", trace.run},
          {"schedule", trace.schedule},
          {"layout", to_json(trace.layout)},
          {"frozen_units", trace.layout.frozen_units},
          {"saved_bytes", trace.saved_bytes},
          {"grad_bytes", trace.grad_bytes},
          {"boundary_bytes", trace.boundary_bytes},
          {"clock_error_s", trace.clock_error},
          {"plan", to_text(trace.plan)}};
}

/// The lowest lane of a track that is free from `start` on; takes it until `end`.
int take_lane(std::vector<double>& lanes, double start, double end) {
  std::size_t lane = 0;
  while (lane < lanes.size() && lanes[lane] > start) ++lane;
  if (lane == lanes.size()) lanes.push_back(0);
  lanes[lane] = end;
  return static_cast<int>(lane);
}

/// Writes the events of one rank and step at a time.
class Writer {
 public:
  Writer(const RunTrace& trace, ChromeTrace& out)
      : trace_(trace), out_(out), index_(trace.plan, trace.layout) {}

  void write(std::size_t step, int rank) {
    const StepRecord& record = at(step, rank);
    const auto& row = trace_.plan.rows[static_cast<std::size_t>(rank)];
    out_.slice(rank, kCompute, "step", fmt::format("step {}", record.step), record.start,
               record.end, fmt::format(R"({{"step":{}}})", record.step));
    for (std::size_t i = 0; i < row.size(); ++i)
      out_.slice(rank, kCompute, "action", title(row[i]), record.actions[i].start,
                 record.actions[i].end,
                 fmt::format(R"({{"i":{},"busy_us":{:.3f}}})", i, record.actions[i].busy * 1e6));
    for (const WaitTime& wait : record.waits)
      out_.slice(rank, kCompute, "wait", wait_title(wait), wait.start, wait.end,
                 fmt::format(R"({{"for":"{}","of":"{}"}})",
                             kWaits[static_cast<std::size_t>(wait.what)], to_text(wait.transfer)));
    std::array<std::vector<double>, 2> lanes;
    for (const Completion& completion : by_start(record))
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

  /// Most tracks of any rank and step: sends, receives.
  const std::array<std::size_t, 2>& lanes() const { return lanes_; }

 private:
  const StepRecord& at(std::size_t step, int rank) const {
    return trace_.steps[step][static_cast<std::size_t>(rank)];
  }

  static std::string wait_title(const WaitTime& wait) {
    switch (wait.what) {
      case WaitFor::receive:
      case WaitFor::send:
        return "wait for " + title(wait.transfer);
      case WaitFor::reduction:
        return "wait for gradients";
      case WaitFor::ranks:
        return "wait for all ranks";
      default:
        return "wait for weights";
    }
  }

  /// From the moment that both ends were posted, as far as they are known.
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

  std::vector<Completion> by_start(const StepRecord& record) const {
    const auto step = static_cast<std::size_t>(record.step - trace_.steps[0][0].step);
    std::vector<std::pair<double, Completion>> order;
    for (const Completion& one : record.completions) order.emplace_back(start_of(step, one), one);
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
    out_.slice(rank, track, "transfer", title(action), start, end,
               fmt::format(R"({{"of":"{}"}})", to_text(action)));
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
  std::array<std::size_t, 2> lanes_{1, 1};
};

void name_tracks(const RunTrace& trace, const std::array<std::size_t, 2>& lanes, ChromeTrace& out) {
  for (int rank = 0; rank < trace.ranks(); ++rank) {
    std::vector<int> stages;
    for (int s = 0; s < trace.layout.stage_count(); ++s)
      if (trace.layout.stage(s).rank == rank) stages.push_back(s);
    out.process(rank, fmt::format("rank {}: stage{} {}", rank, stages.size() == 1 ? "" : "s",
                                  fmt::join(stages, ", ")));
    out.track(rank, kCompute, "compute");
    for (const auto& [first, name, count] :
         {std::tuple{kSend, "send", lanes[0]}, std::tuple{kReceive, "receive", lanes[1]}})
      for (int lane = 0; lane < static_cast<int>(count); ++lane)
        out.track(rank, first + lane, lane == 0 ? name : fmt::format("{} {}", name, lane + 1));
  }
}

/// Puts a trace together from its events, which come rank by rank.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  void see(const nlohmann::json& event) {
    const std::string phase = event.at("ph");
    if (phase == "C") return counter(event);
    if (phase != "X") return;
    const double start = event.at("ts").get<double>() * 1e-6;
    const double end = start + event.at("dur").get<double>() * 1e-6;
    const std::string category = event.at("cat");
    const nlohmann::json& args = event.at("args");
    if (category == "step") {
      steps_[args.at("step")].push_back({.step = args.at("step"),
                                         .start = start,
                                         .end = end,
                                         .actions = {},
                                         .waits = {},
                                         .completions = {},
                                         .memory = {}});
      current_ = &steps_[args.at("step")].back();
      samples_ = 0;
    } else if (category == "action") {
      current_->actions.push_back({start, end, args.at("busy_us").get<double>() * 1e-6});
    } else if (category == "wait") {
      const auto what = std::ranges::find(kWaits, args.at("for").get<std::string>());
      if (what == kWaits.end()) fail();
      current_->waits.push_back(
          {static_cast<WaitFor>(what - kWaits.begin()), action_of(args.at("of")), start, end});
    } else if (category == "transfer") {
      current_->completions.push_back({action_of(args.at("of")), end});
    }
  }

  void finish(RunTrace& trace) {
    for (auto& [step, ranks] : steps_) {
      if (ranks.size() != trace.plan.rows.size()) fail();
      for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        if (ranks[rank].actions.size() != trace.plan.rows[rank].size()) fail();
      trace.steps.push_back(std::move(ranks));
    }
    if (trace.steps.empty()) fail();
  }

  [[noreturn]] void fail() const {
    throw_input("this trace is not complete", path_,
                "train some steps more: they record a new one");
  }

 private:
  void counter(const nlohmann::json& event) {
    const nlohmann::json& args = event.at("args");
    if (args.contains("microbatches")) {
      current_->memory.at(samples_++).use.activations = args.at("microbatches");
      return;
    }
    MemorySample& sample = current_->memory.emplace_back();
    sample.time = event.at("ts").get<double>() * 1e-6;
    sample.use.saved_bytes = args.at("saved activations");
    sample.use.boundary_bytes = args.at("boundary buffers");
  }

  Action action_of(const std::string& text) const {
    return parse_plan(text, path_).rows.at(0).at(0);
  }

  std::string path_;
  std::map<std::int64_t, std::vector<StepRecord>> steps_;
  StepRecord* current_ = nullptr;
  std::size_t samples_ = 0;
};

}  // namespace

std::string title(const Action& action) {
  if (action.kind == Kind::STEP) return "optimizer";
  if (action.kind == Kind::REDUCE) return fmt::format("reduce stage {}", action.stage);
  const std::string text = to_text(action);
  const std::size_t kind = text.find_first_not_of("0123456789");
  return fmt::format("{} {} stage {}",
                     text.substr(kind, text.find_last_not_of("0123456789") + 1 - kind),
                     action.microbatch, action.stage);
}

std::string to_chrome_trace(const RunTrace& trace) {
  ChromeTrace out(about(trace));
  Writer writer(trace, out);
  for (std::size_t step = 0; step < trace.steps.size(); ++step)
    for (int rank = 0; rank < trace.ranks(); ++rank) writer.write(step, rank);
  name_tracks(trace, writer.lanes(), out);
  return out.finish();
}

RunTrace read_run_trace(const std::string& path) {
  RunTrace trace;
  Reader reader(path);
  try {
    const nlohmann::json about =
        read_chrome_trace(path, [&](const nlohmann::json& event) { reader.see(event); });
    trace.run = about.at("run");
    trace.schedule = about.at("schedule");
    trace.layout = layout_from(about.at("layout"));
    trace.layout.frozen_units = about.value("frozen_units", 0);
    trace.saved_bytes = about.at("saved_bytes").get<std::vector<std::size_t>>();
    trace.grad_bytes = about.at("grad_bytes").get<std::vector<std::size_t>>();
    trace.boundary_bytes = about.at("boundary_bytes");
    trace.clock_error = about.at("clock_error_s");
    trace.plan = parse_plan(about.at("plan").get<std::string>(), path);
  } catch (const nlohmann::json::exception&) {
    reader.fail();
  } catch (const std::out_of_range&) {
    reader.fail();
  }
  reader.finish(trace);
  return trace;
}

}  // namespace concertina
