#include <algorithm>
#include <map>

#include "core/error.h"
#include "experiments/record/run_trace.h"
#include "experiments/run/layout_json.h"
#include "io/chrome_trace.h"
#include "parallel/plan/fit_layout.h"
#include "parallel/plan/plan_grid.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

/// Assembles a trace from its events, which are sorted by rank.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  void see(const nlohmann::json& event) {
    const std::string phase = event.at("ph");
    if (phase != "X" && phase != "C") return;
    if (current_ == nullptr && (phase == "C" || event.at("cat") != "step")) fail();
    if (phase == "C") return counter(event);
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
      current().actions.push_back({start, end, args.at("busy_us").get<double>() * 1e-6});
    } else if (category == "wait") {
      const auto what = std::ranges::find(kWaitNames, args.at("for").get<std::string>());
      if (what == kWaitNames.end()) fail();
      current().waits.push_back(
          {static_cast<WaitFor>(what - kWaitNames.begin()), action_of(args.at("of")), start, end});
    } else if (category == "transfer") {
      current().completions.push_back({action_of(args.at("of")), end});
    }
  }

  void finish(RunTrace& trace) {
    require_sound(trace);
    const PlanIndex index(trace.plan, trace.layout);
    const auto known = [&](const Action& action) {
      return action.kind == Kind::STEP || index.contains(action);
    };
    for (auto& [step, ranks] : steps_) {
      if (ranks.size() != trace.plan.rows.size()) fail();
      for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        if (ranks[rank].actions.size() != trace.plan.rows[rank].size() ||
            !std::ranges::all_of(ranks[rank].waits, known, &WaitTime::transfer) ||
            !std::ranges::all_of(ranks[rank].completions, known, &Completion::transfer))
          fail();
      trace.steps.push_back(std::move(ranks));
    }
    if (trace.steps.empty()) fail();
  }

  [[noreturn]] void fail() const {
    throw_input("the trace is incomplete", path_, "train a few more steps to record a new one");
  }

 private:
  /// Throws unless all indices derived from the layout and plan are valid.
  void require_sound(const RunTrace& trace) const {
    const Layout& layout = trace.layout;
    if (layout.pipelines.empty()) fail();
    for (const Pipeline& pipeline : layout.pipelines)
      if (pipeline.stages.empty() || pipeline.microbatches() < 1) fail();
    const int microbatches = layout.pipelines.back().last_microbatch;
    if (microbatches < 1 || static_cast<std::size_t>(microbatches) > kMostActions) fail();
    validate(layout, {.world = static_cast<int>(trace.plan.rows.size()),
                      .units = layout.pipelines[0].stages.back().last_unit,
                      .microbatches = microbatches,
                      .leaves = microbatches});
    const auto stages = static_cast<std::size_t>(layout.stage_count());
    if (layout.frozen_units < 0 || layout.frozen_units >= layout.unit_count() ||
        trace.saved_bytes.size() != stages || trace.grad_bytes.size() != stages)
      fail();
    if (const auto violation = check(trace.plan, layout, limits_of(trace.plan)))
      throw RefusedPlan(trace.plan, *violation, "the trace's plan is invalid: ", path_);
  }

  /// The step of the preceding step event.
  StepRecord& current() {
    if (current_ == nullptr) fail();
    return *current_;
  }

  void counter(const nlohmann::json& event) {
    const nlohmann::json& args = event.at("args");
    if (args.contains("microbatches")) {
      current().memory.at(samples_++).use.activations = args.at("microbatches");
      return;
    }
    MemorySample& sample = current().memory.emplace_back();
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
