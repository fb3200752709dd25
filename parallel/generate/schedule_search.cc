#include "parallel/generate/schedule_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "core/error.h"
#include "core/text/number_text.h"
#include "parallel/generate/one_replica.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/generate/search.h"

namespace concertina {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // 4.1 x 10 chunks must give 41 stage activations

/// One folding of a pipeline onto the ranks.
struct SearchField {
  Folding folding;
  Layout layout;
  Limits limits;
  bool default_value = false;  // whether some schedule uses it by default
  double weights = 1;          // copies of its share of the weights on a rank
};

/// Returns the maximum number of copies of its share of the weights that a rank keeps: a rank of
/// opposite pipelines has two different stages.
double copies_of_weights(const Layout& layout) {
  std::vector<std::set<int>> units(static_cast<std::size_t>(rank_count(layout)));
  std::size_t most = 0;
  for (const StagePlacement& stage : layout.stages()) {
    std::set<int>& held = units[static_cast<std::size_t>(stage.rank)];
    for (int unit = stage.first_unit; unit < stage.last_unit; ++unit) held.insert(unit);
    most = std::max(most, held.size());
  }
  return static_cast<double>(most * units.size()) / layout.unit_count();
}

class Search {
 public:
  Search(const ScheduleSearch& options, const SearchCosts& costs)
      : options_(options), costs_(costs), max_chunks_(max_chunks()) {}

  FoundSchedule run() {
    require_room(std::int64_t{options_.ranks} * max_chunks_, options_.microbatches,
                 options_.free_bytes);
    leaves_of(options_.leaves, options_.microbatches);  // throws if invalid
    for (const Entry<Schedule>& schedule : schedules()) {
      if (schedule.value.searched) continue;
      const Chunks& chunks = schedule.value.chunks;
      const int least = costs_.rows ? max_chunks_ : chunks.step;
      for (int v = least; v <= std::min(chunks.most, max_chunks_); v += chunks.step)
        if (keep_searching(schedule.name, v, kInf)) try_named(schedule, v);
    }
    const SearchField* best = best_;
    for (const SearchField& field : fields_)
      if ((field.default_value || &field == best) && may_be_found(field) && !perfect_ &&
          keep_searching("moves", field.folding.chunks, kInf))
        try_searched(field);
    if (best_ == nullptr)
      throw_input(
          fmt::format("no schedule fits within {:g} microbatches per rank", options_.memory),
          "--memory", fmt::format("{}, the requirement of 1f1b", options_.ranks));
    found_.max_chunks = max_chunks_;
    found_.stopped = stopped_;
    found_.tries = std::move(tries_);
    return std::move(found_);
  }

 private:
  bool keep_searching(std::string_view doing, int chunks, double least) {
    if (!stopped_ && options_.keep_searching &&
        !options_.keep_searching({doing, chunks, std::min(least, least_)}))
      stopped_ = best_ != nullptr;
    return !stopped_;
  }

  int max_chunks() const {
    if (const std::optional<int> rows = costs_.rows) return chunks_of(*rows);
    const std::optional<int> units = costs_.units;
    if (units && *units < options_.ranks)
      throw_input(fmt::format("the model has only {} for {}", counted(*units, "unit"),
                              counted(options_.ranks, "rank")),
                  "--ranks", fmt::format("--ranks from 1 to {}", *units));
    const int most = units ? *units / options_.ranks : kMaxChunks;
    if (options_.max_chunks == 0) return most;
    return units ? std::min(options_.max_chunks, most) : options_.max_chunks;
  }

  /// Returns the number of chunks implied by a file with costs for this many stages.
  int chunks_of(int rows) const {
    const int chunks = rows / options_.ranks;
    if (chunks * options_.ranks != rows)
      throw_input(fmt::format("the file gives costs for {} on {}", counted(rows, "stage"),
                              counted(options_.ranks, "rank")),
                  "--costs", "as many rows as ranks, or a multiple of that: one per stage");
    constexpr int kMostChunks = 64;  // maximum for --chunks of a schedule
    const int most = options_.max_chunks > 0 ? options_.max_chunks : kMostChunks;
    if (chunks > most)
      throw_input(fmt::format("the file gives costs for {}, which is {} per rank",
                              counted(rows, "stage"), counted(chunks, "chunk")),
                  "--costs", fmt::format("at most {} per rank", counted(most, "chunk")));
    return chunks;
  }

  /// Opposite pipelines keep two copies of their weights.
  bool may_be_found(const SearchField& field) const {
    return options_.opposite || field.weights <= 1;
  }

  /// Returns the length that schedules are compared by.
  double length(const Plan& plan, const Timeline& timeline) const {
    return options_.objective == Objective::step ? timeline.makespan : longest_span(plan, timeline);
  }

  /// Peak activations of a rank, in microbatches of its share of the model.
  double share_of(const SearchField& field, const Plan& plan) const {
    double most = 0;
    for (const std::vector<Action>& row : plan.rows)
      most = std::max(most, kept_peak(row, options_.kept_for_weight));
    return most / field.folding.chunks;
  }

  bool within(const SearchField& field, const Plan& plan) const {
    Limits limits = field.limits;
    limits.peak_activations.clear();
    if (check(plan, field.layout, limits)) return false;
    for (std::size_t rank = 0; rank < field.limits.peak_activations.size(); ++rank)
      if (kept_peak(plan.rows[rank], options_.kept_for_weight) >
          field.limits.peak_activations[rank] * (1 + kRounding))
        return false;
    return true;
  }

  /// Returns a schedule's folding; throws Error{bad_input} if it has none for this many ranks.
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
      field.default_value = field.default_value || chunks == schedule.value.chunks.default_value;
      const Plan plan = make_plan(field.layout, schedule.name,
                                  {.leaf_microbatches = field.limits.leaf_microbatches});
      const Costs costs = costs_of(field, plan);
      const Timeline timeline = simulate(plan, field.layout, costs);
      const bool fits = within(field, plan);
      tries_.push_back({std::string(schedule.name), chunks, timeline.makespan,
                        longest_span(plan, timeline), share_of(field, plan), field.weights, fits});
      if (fits && may_be_found(field)) offer(field, plan, costs, schedule.name);
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;  // otherwise: not for these ranks or microbatches
    }
  }

  void try_searched(const SearchField& field) {
    // The exchange depends on the plan, but moves are judged by compute actions only.
    const Plan any =
        make_plan(field.layout, "gpipe", {.leaf_microbatches = field.limits.leaf_microbatches});
    const Costs costs = costs_of(field, any);
    const SearchBounds bounds{
        field.limits.peak_activations,
        options_.kept_for_weight,
        options_.objective,
        options_.seed,
        options_.effort,
        [&](double least) { return keep_searching("moves", field.folding.chunks, least); }};
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
    // A rank never idles, so nothing can be shorter.
    perfect_ = options_.objective == Objective::step
                   ? *std::ranges::min_element(timeline.bubble) < kRounding
                   : least_ <= *std::ranges::max_element(timeline.compute) * (1 + kRounding);
    found_ = {.plan = plan,
              .layout = field.layout,
              .costs = costs,
              .timeline = timeline,
              .span = longest_span(plan, timeline),
              .share = share_of(field, plan),
              .weights = field.weights,
              .chunks = field.folding.chunks,
              .from = std::string(from)};
  }

  const ScheduleSearch& options_;
  const SearchCosts& costs_;
  const int max_chunks_;
  std::deque<SearchField> fields_;  // a deque, for stable addresses
  std::vector<ScheduleTry> tries_;
  const SearchField* best_ = nullptr;
  double least_ = kInf;
  bool perfect_ = false, stopped_ = false;
  FoundSchedule found_;
};

}  // namespace

FoundSchedule search_schedule(const ScheduleSearch& options, const SearchCosts& costs) {
  return Search(options, costs).run();
}

}  // namespace concertina
