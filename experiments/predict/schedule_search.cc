#include "experiments/predict/schedule_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/predict/bubble_json.h"
#include "parallel/generate/one_replica.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/generate/search.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // 4.1 x 10 chunks are 41 microbatches of stages

/// One way to fold a pipeline onto the ranks.
struct SearchField {
  Folding folding;
  Layout layout;
  Limits limits;
  bool usual = false;  // what some schedule wants
  double weights = 1;  // times that a rank keeps its share of them
};

/// How many times its share of the weights a rank keeps, at most: of opposite pipelines a rank
/// holds two different stages.
double copies_of_weights(const Layout& layout) {
  std::vector<std::set<int>> units(static_cast<std::size_t>(rank_count(layout)));
  std::size_t most = 0;
  for (const Pipeline& pipeline : layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages) {
      std::set<int>& held = units[static_cast<std::size_t>(stage.rank)];
      for (int unit = stage.first_unit; unit < stage.last_unit; ++unit) held.insert(unit);
      most = std::max(most, held.size());
    }
  return static_cast<double>(most * units.size()) / layout.unit_count();
}

class Search {
 public:
  Search(const ScheduleSearch& options, const ScheduleCosts& costs)
      : options_(options), costs_(costs), max_chunks_(max_chunks()) {}

  FoundSchedule run() {
    require_room(std::int64_t{options_.ranks} * max_chunks_, options_.microbatches,
                 options_.free_bytes);
    leaves_of(options_.leaves, options_.microbatches);  // throws
    for (const Entry<Schedule>& schedule : schedules()) {
      if (schedule.value.searched) continue;
      const Chunks& chunks = schedule.value.chunks;
      const int least = costs_.rows() ? max_chunks_ : chunks.step;
      for (int v = least; v <= std::min(chunks.most, max_chunks_); v += chunks.step)
        if (goes_on(schedule.name, v, kInf)) try_named(schedule, v);
    }
    const SearchField* best = best_;
    for (const SearchField& field : fields_)
      if ((field.usual || &field == best) && may_be_found(field) && !perfect_ &&
          goes_on("moves", field.folding.chunks, kInf))
        try_searched(field);
    if (best_ == nullptr)
      throw_input(
          fmt::format("no schedule keeps at most {:g} microbatches per rank", options_.memory),
          "--memory", fmt::format("{} is what 1f1b keeps", options_.ranks));
    found_.report["max_chunks"] = max_chunks_;
    found_.report["opposite"] = options_.opposite;
    found_.report["stopped"] = stopped_;
    found_.report["named"] = named_;
    return std::move(found_);
  }

 private:
  bool goes_on(std::string_view doing, int chunks, double least) {
    if (!stopped_ && options_.goes_on &&
        !options_.goes_on({doing, chunks, std::min(least, least_)}))
      stopped_ = best_ != nullptr;
    return !stopped_;
  }

  int max_chunks() const {
    if (const std::optional<int> rows = costs_.rows()) return chunks_of(*rows);
    const std::optional<int> units = costs_.units();
    if (units && *units < options_.ranks)
      throw_input(fmt::format("the model has {} for {}", counted(*units, "unit"),
                              counted(options_.ranks, "rank")),
                  "--ranks", fmt::format("--ranks from 1 to {}", *units));
    const int most = units ? *units / options_.ranks : kMaxChunks;
    if (options_.max_chunks == 0) return most;
    return units ? std::min(options_.max_chunks, most) : options_.max_chunks;
  }

  /// The number of chunks that a file with costs of so many stages has.
  int chunks_of(int rows) const {
    const int chunks = rows / options_.ranks;
    if (chunks * options_.ranks != rows)
      throw_input(fmt::format("the file has costs of {} for {}", counted(rows, "stage"),
                              counted(options_.ranks, "rank")),
                  "--costs", "as many rows as ranks, or a multiple of it: one per stage");
    constexpr int kMostChunks = 64;  // of a schedule's own --chunks
    const int most = options_.max_chunks > 0 ? options_.max_chunks : kMostChunks;
    if (chunks > most)
      throw_input(fmt::format("the file has costs of {}, {} per rank", counted(rows, "stage"),
                              counted(chunks, "chunk")),
                  "--costs", fmt::format("at most {} per rank", counted(most, "chunk")));
    return chunks;
  }

  /// Opposite pipelines keep weights twice.
  bool may_be_found(const SearchField& field) const {
    return options_.opposite || field.weights <= 1;
  }

  /// What a schedule is judged by.
  double length(const Plan& plan, const Timeline& timeline) const {
    return options_.objective == Objective::step ? timeline.makespan : longest_span(plan, timeline);
  }

  /// Most activations of a rank, in microbatches of its share of the model.
  double share_of(const SearchField& field, const Plan& plan) const {
    double most = 0;
    for (const std::vector<Action>& row : plan.rows)
      most = std::max(most, kept_peak(row, options_.kept_for_weight));
    return most / field.folding.chunks;
  }

  bool within(const SearchField& field, const Plan& plan) const {
    if (options_.kept_for_weight == 1) return !check(plan, field.layout, field.limits);
    Limits limits = field.limits;
    limits.peak_activations.clear();
    if (check(plan, field.layout, limits)) return false;
    for (std::size_t rank = 0; rank < field.limits.peak_activations.size(); ++rank)
      if (kept_peak(plan.rows[rank], options_.kept_for_weight) >
          field.limits.peak_activations[rank] * (1 + kRounding))
        return false;
    return true;
  }

  /// The field for a schedule; throws Error{bad_input} if it has none with these ranks.
  SearchField& field_of(const Entry<Schedule>& schedule, int chunks) {
    const Folding folding = folding_of(schedule, chunks);
    for (SearchField& field : fields_)
      if (field.folding.chunks == folding.chunks && field.folding.placement == folding.placement)
        return field;
    fields_.push_back(make_field(folding));
    return fields_.back();
  }

  SearchField make_field(const Folding& folding) const {
    auto [layout, leaves] =
        one_replica(options_.ranks, options_.microbatches, options_.leaves, folding);
    SearchField field{folding, std::move(layout), {}};
    field.weights = copies_of_weights(field.layout);
    field.limits.leaf_microbatches = options_.microbatches / leaves;
    if (options_.memory > 0) {
      // No rank can save more than all microbatches of all its stages.
      const double all = static_cast<double>(options_.microbatches) * folding.chunks;
      field.limits.peak_activations.assign(
          static_cast<std::size_t>(options_.ranks),
          static_cast<int>(std::min(options_.memory * folding.chunks + kRounding, all)));
    }
    return field;
  }

  Costs costs_of(const SearchField& field, const Plan& plan) const {
    return costs_.of(field.layout, plan, 1.0 / field.folding.chunks,
                     options_.microbatches / field.limits.leaf_microbatches);
  }

  void try_named(const Entry<Schedule>& schedule, int chunks) {
    try {
      SearchField& field = field_of(schedule, chunks);
      field.usual = field.usual || chunks == schedule.value.chunks.usual;
      const Plan plan = make_plan(field.layout, schedule.name,
                                  {.leaf_microbatches = field.limits.leaf_microbatches});
      const Costs costs = costs_of(field, plan);
      const Timeline timeline = simulate(plan, field.layout, costs);
      const bool fits = within(field, plan);
      named_.push_back({{"schedule", schedule.name},
                        {"chunks", chunks},
                        {"makespan", timeline.makespan},
                        {"span", longest_span(plan, timeline)},
                        {"share", share_of(field, plan)},
                        {"weights", field.weights},
                        {"within", fits}});
      if (fits && may_be_found(field)) offer(field, plan, costs, schedule.name);
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;  // else: not for these ranks or microbatches
    }
  }

  void try_searched(const SearchField& field) {
    // What is exchanged depends on the plan; what moves are judged by are compute actions alone.
    const Plan any =
        make_plan(field.layout, "gpipe", {.leaf_microbatches = field.limits.leaf_microbatches});
    const Costs costs = costs_of(field, any);
    const SearchBounds bounds{
        field.limits.peak_activations,
        options_.kept_for_weight,
        options_.objective,
        options_.seed,
        options_.effort,
        [&](double least) { return goes_on("moves", field.folding.chunks, least); }};
    const SearchResult result = search(field.layout, costs, named_plans(field.layout), bounds);
    if (result.seconds == kInf) return;
    Plan plan = merge_input_weight({result.plan, field.layout});
    plan = add_reduction(add_transfers({plan, field.layout}, costs));
    if (within(field, plan)) offer(field, plan, costs_of(field, plan), "search");
  }

  /// Keeps a plan within the bound if it is the best so far.
  void offer(const SearchField& field, const Plan& plan, const Costs& costs,
             std::string_view from) {
    const Timeline timeline = simulate(plan, field.layout, costs);
    if (best_ != nullptr && length(plan, timeline) >= least_) return;
    best_ = &field;
    least_ = length(plan, timeline);
    // A rank that never idles: nothing can be shorter.
    perfect_ = options_.objective == Objective::step
                   ? *std::ranges::min_element(timeline.bubble) < kRounding
                   : least_ <= *std::ranges::max_element(timeline.compute) * (1 + kRounding);
    const bool step = options_.objective == Objective::step;
    found_ = {
        plan,
        field.layout,
        {{"objective", step ? "step" : "span"},
         {"makespan", timeline.makespan},
         {"span", longest_span(plan, timeline)},
         {"bubble",
          {{"mean", timeline.mean_bubble},
           {"ranks", timeline.bubble},
           {"definitions", definitions_json(plan, timeline)}}},
         {"peak_activations",
          {{"microbatch_stages", timeline.peak_activations}, {"share", share_of(field, plan)}}},
         {"chunks", field.folding.chunks},
         {"weights", field.weights},
         {"from", from},
         {"links", costs_.links(field.layout, costs)}}};
  }

  const ScheduleSearch& options_;
  const ScheduleCosts& costs_;
  const int max_chunks_;
  std::deque<SearchField> fields_;  // stay where they are
  Json named_ = Json::array();
  const SearchField* best_ = nullptr;
  double least_ = kInf;
  bool perfect_ = false, stopped_ = false;
  FoundSchedule found_;
};

/// The best of one schedule's tries: one within the bound, then the shortest by `length`.
const Json& best_of(const std::vector<const Json*>& tries, const char* length) {
  return **std::min_element(tries.begin(), tries.end(), [&](const Json* a, const Json* b) {
    const auto key = [&](const Json& one) {
      return std::pair(!one["within"].get<bool>(), one[length].get<double>());
    };
    return key(*a) < key(*b);
  });
}

/// The end of a line of the table.
std::string weights_note(const Json& one, bool opposite) {
  if (one["weights"].get<double>() <= 1) return "\n";
  return opposite ? "  keeps weights twice\n" : "  keeps weights twice: left out (--opposite)\n";
}

}  // namespace

FoundSchedule search_schedule(const ScheduleSearch& options, const ScheduleCosts& costs) {
  return Search(options, costs).run();
}

std::string search_table(const Json& report) {
  const bool opposite = report["opposite"].get<bool>();
  const char* length = report["objective"] == "step" ? "makespan" : "span";
  std::string text = fmt::format("links: {}\n{:<20} {:>6} {:>10} {:>10} {:>12} {:>7}\n",
                                 report["links"]["text"].get<std::string>(), "schedule", "chunks",
                                 "makespan", "span", "activations", "tried");
  const auto line = [](const std::string& name, const Json& one, double share,
                       const std::string& tried) {
    return fmt::format("{:<20} {:>6} {:>10g} {:>10g} {:>12g} {:>7}", name, one["chunks"].get<int>(),
                       one["makespan"].get<double>(), one["span"].get<double>(), share, tried);
  };
  const Json& named = report["named"];
  for (std::size_t i = 0, next = 0; i < named.size(); i = next) {
    std::vector<const Json*> tries;
    for (; next < named.size() && named[next]["schedule"] == named[i]["schedule"]; ++next)
      tries.push_back(&named[next]);
    const Json& best = best_of(tries, length);
    const int least = (*tries.front())["chunks"].get<int>();
    const int most = (*tries.back())["chunks"].get<int>();
    text += line(best["schedule"].get<std::string>(), best, best["share"].get<double>(),
                 least == most ? fmt::to_string(least) : fmt::format("{}..{}", least, most)) +
            (best["within"].get<bool>() ? "" : "  too many") + weights_note(best, opposite);
  }
  text += line("found (" + report["from"].get<std::string>() + ")", report,
               report["peak_activations"]["share"].get<double>(), "") +
          weights_note(report, opposite);
  if (report["stopped"].get<bool>())
    text += "stopped by a signal: this is the best so far; not everything was tried\n";
  for (const auto& [name, one] : report["bubble"]["definitions"].items())
    text += fmt::format("bubble {:<12} {:>8.4f}  {}\n", name, one["value"].get<double>(),
                        one["formula"].get<std::string>());
  return text;
}

}  // namespace concertina
