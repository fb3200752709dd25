#include "experiments/commands/schedule_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/search.h"
#include "parallel/plan/reduction_tree.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kEffort = 300'000'000;  // a few seconds for each way to fold

/// One way to fold a pipeline onto the ranks.
struct Field {
  Folding folding;
  Layout layout;
  Limits limits;
  Costs costs;  // of compute actions; what is exchanged depends on the plan
};

class Search {
 public:
  Search(const ScheduleSearch& options, const ScheduleCosts& costs)
      : options_(options), costs_(costs) {}

  FoundSchedule run() {
    for (const Entry<Schedule>& schedule : schedules())
      if (!schedule.value.searched) try_named(schedule);
    for (const Field& field : fields_) try_searched(field);
    if (least_ == std::numeric_limits<double>::infinity())
      throw_input(
          fmt::format("no schedule keeps at most {:g} microbatches a rank", options_.memory),
          "--memory", fmt::format("{} is what 1f1b keeps", options_.ranks));
    found_.report["named"] = named_;
    return std::move(found_);
  }

 private:
  /// The field for a schedule; null if it has none with these ranks and microbatches.
  const Field* field_of(const Entry<Schedule>& schedule) {
    try {
      const Folding folding = folding_of(schedule, 0);
      for (const Field& field : fields_)
        if (field.folding.chunks == folding.chunks && field.folding.placement == folding.placement)
          return &field;
      fields_.push_back(make_field(folding));
      return &fields_.back();
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
      return nullptr;
    }
  }

  Field make_field(const Folding& folding) const {
    const int stages = options_.ranks * folding.chunks;
    int leaves = default_leaves(options_.microbatches);
    if (leaves < folding.pipelines()) leaves = options_.microbatches;
    std::vector<UnitRange> units;
    for (int stage = 0; stage < stages; ++stage) units.push_back({stage, stage + 1});
    const Grid grid = fit({.world = options_.ranks,
                           .units = stages,
                           .microbatches = options_.microbatches,
                           .leaves = leaves},
                          options_.ranks, 1, folding);
    Field field{folding, make_layout(units, grid, options_.microbatches, leaves, folding), {}, {}};
    field.limits.leaf_microbatches = options_.microbatches / leaves;
    if (options_.memory > 0)
      field.limits.peak_activations.assign(static_cast<std::size_t>(options_.ranks),
                                           static_cast<int>(options_.memory * folding.chunks));
    const Plan plan =
        make_plan(field.layout, "gpipe", {.leaf_microbatches = field.limits.leaf_microbatches});
    field.costs = costs_.of(field.layout, plan, 1.0 / folding.chunks);
    return field;
  }

  void try_named(const Entry<Schedule>& schedule) {
    const Field* field = field_of(schedule);
    if (field == nullptr) return;
    try {
      const Plan plan = make_plan(field->layout, schedule.name,
                                  {.leaf_microbatches = field->limits.leaf_microbatches});
      const double makespan = consider(*field, plan, std::string(schedule.name));
      const Timeline timeline = simulate(plan, field->layout, field->costs);
      const int peak =
          *std::max_element(timeline.peak_activations.begin(), timeline.peak_activations.end());
      named_.push_back({{"schedule", schedule.name},
                        {"chunks", field->folding.chunks},
                        {"makespan", timeline.makespan},
                        {"share", static_cast<double>(peak) / field->folding.chunks},
                        {"within", std::isfinite(makespan)}});
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;  // else: not for these ranks or microbatches
    }
  }

  void try_searched(const Field& field) {
    SearchBounds bounds{field.limits.peak_activations, options_.seed, kEffort};
    const SearchResult result =
        search(field.layout, field.costs, named_plans(field.layout), bounds);
    if (!std::isfinite(result.seconds)) return;
    Plan plan = merge_input_weight(result.plan, field.layout);
    plan = add_reduction(add_transfers(plan, field.layout), field.layout);
    consider(field, plan, "search");
  }

  /// Keeps the plan if it is the best so far; infinity if it breaks a limit.
  double consider(const Field& field, const Plan& plan, const std::string& from) {
    if (check(plan, field.layout, field.limits)) return std::numeric_limits<double>::infinity();
    const Timeline timeline = simulate(plan, field.layout, field.costs);
    if (timeline.makespan < least_) {
      least_ = timeline.makespan;
      found_ = {plan,
                field.layout,
                {{"makespan", timeline.makespan},
                 {"bubble", {{"mean", timeline.mean_bubble}, {"ranks", timeline.bubble}}},
                 {"peak_activations", {{"microbatch_stages", timeline.peak_activations}}},
                 {"chunks", field.folding.chunks},
                 {"from", from}}};
    }
    return timeline.makespan;
  }

  const ScheduleSearch& options_;
  const ScheduleCosts& costs_;
  std::vector<Field> fields_;
  Json named_ = Json::array();
  double least_ = std::numeric_limits<double>::infinity();
  FoundSchedule found_;
};

}  // namespace

FoundSchedule search_schedule(const ScheduleSearch& options, const ScheduleCosts& costs) {
  return Search(options, costs).run();
}

std::string search_table(const Json& report) {
  std::string text =
      fmt::format("{:<20} {:>6} {:>10} {:>12}\n", "schedule", "chunks", "makespan", "activations");
  for (const Json& one : report["named"])
    text += fmt::format("{:<20} {:>6} {:>10g} {:>12g}{}\n", one["schedule"].get<std::string>(),
                        one["chunks"].get<int>(), one["makespan"].get<double>(),
                        one["share"].get<double>(), one["within"].get<bool>() ? "" : "  too many");
  const int chunks = report["chunks"].get<int>();
  const auto peaks = report["peak_activations"]["microbatch_stages"].get<std::vector<int>>();
  return text +
         fmt::format("{:<20} {:>6} {:>10g} {:>12g}\n",
                     "found (" + report["from"].get<std::string>() + ")", chunks,
                     report["makespan"].get<double>(),
                     static_cast<double>(*std::max_element(peaks.begin(), peaks.end())) / chunks);
}

}  // namespace concertina
